// Formulas: what counts as one in markdown, and KaTeX, which is fetched when the first one is there.

import { later } from "./later.js";
import { reachable } from "./reachable.js";

const LONGEST = 4000; // characters; a longer one stays as it was written
const DEEPEST = 250; // elements inside each other, some thirty fractions; the layout of a thousand and more takes the browser's page down
const WIDE = 32; // characters; a longer one may be wider than a phone
const REMEMBERED = 500;
const OPENING = /^ {0,3}(\$\$(?!\$)|\\\[)/;
const CLOSING = { $$: "$$", "\\[": "\\]", "\\(": "\\)" };
const INLINE = String.raw`\$(?![\s$])(?:\\.|[^\\$\n${"`"}])*?[^\s\\$\n${"`"}]\$(?![\p{L}\p{N}$])`; // one line; not “$5 and $10”
const DOLLARS = new RegExp(`^${INLINE}`, "u");
const MONEY = /^\$\d[\d.,]*(?:[kKmMbB%]|\s?%)?[,;:.]?\s+\p{L}{2}/u; // “$5 or more, so 10$”
const OPTIONS = {
  throwOnError: true,
  trust: false,
  strict: "ignore",
  maxExpand: 200,
  maxSize: 15,
  errorColor: "currentColor",
};

// Where the formula that was opened before `from` is closed; −1 when a blank line or the end comes first.
function closed(src, from, closing) {
  const end = blank(src, from);
  for (
    let at = src.indexOf(closing, from);
    at >= 0 && at < end;
    at = src.indexOf(closing, at + 1)
  ) {
    if (/(?<!\\)(?:\\\\)*$/.test(src.slice(Math.max(from, at - 8), at))) return at;
  }
  return -1;
}

function blank(src, from) {
  const at = src.slice(from).search(/\n[ \t]*\n/);
  return at < 0 ? src.length : from + at;
}

// A line that opens a formula begins a block, which goes on to the end of the line that closes it. One that nothing closes goes on to the
// blank line and is shown as it was written: what may still become a formula is never taken apart as a list or a heading.
const block = {
  name: "formula",
  level: "block",
  start: (src) => {
    const found = /\n(?:[ \t]*\n| {0,3}(\$\$(?!\$)|\\\[))/.exec(src);
    return found?.[1] ? found.index + 1 : undefined;
  },
  tokenizer(src) {
    const [opening, mark] = OPENING.exec(src) ?? [];
    if (!opening) return undefined;
    const at = closed(src, opening.length, CLOSING[mark]);
    const line = at < 0 ? -1 : src.indexOf("\n", at);
    const end = at < 0 ? blank(src, 0) : line < 0 ? src.length : line;
    return {
      type: "formula",
      raw: src.slice(0, end),
      tokens: this.lexer.inline(src.slice(0, end).trim()),
    };
  },
  renderer(token) {
    return `<p>${this.parser.parseInline(token.tokens)}</p>`;
  },
};

const inline = {
  name: "math",
  level: "inline",
  start: (src) => {
    const at = src.indexOf("$");
    return at < 0 ? undefined : at;
  },
  tokenizer(src, tokens) {
    const raw =
      src[0] === "$"
        ? dollars(src, tokens.at(-1)?.raw.at(-1) ?? "")
        : src[0] === "\\"
          ? brackets(src)
          : "";
    return raw ? { type: "math", raw } : undefined;
  },
  renderer: ({ raw }) => `<span class="${shape(raw)}">${escaped(raw)}</span>`,
};

function shape(raw) {
  if (/^(?:\$\$|\\\[)/.test(raw)) return "math display";
  return raw.length > WIDE ? "math wide" : "math";
}

function dollars(src, before) {
  if (src.startsWith("$$")) return between(src, "$$");
  if (/[\p{L}\p{N}$]/u.test(before)) return "";
  const [raw] = DOLLARS.exec(src) ?? [""];
  return MONEY.test(raw) ? "" : raw;
}

function brackets(src) {
  const opening = src.slice(0, 2);
  if (opening !== "\\(" && opening !== "\\[") return "";
  const raw = between(src, opening);
  return opening === "\\[" && /^[([]/.test(src.slice(raw.length)) ? "" : raw; // \[a link that was escaped\](…)
}

function between(src, opening) {
  const at = closed(src, 2, CLOSING[opening]);
  return at < 0 || !src.slice(2, at).trim() ? "" : src.slice(0, at + 2);
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

export const math = {
  extensions: [block, inline],
  tokenizer: {
    // An underline inside a formula makes no heading of what stands before it.
    lheading(src) {
      const at = block.start(src);
      const heading = at === undefined ? null : this.rules.block.lheading.exec(src);
      return heading && at < heading[0].length ? undefined : false;
    },
  },
  hooks: {
    emStrongMask: (src) =>
      src.replace(new RegExp(INLINE, "gu"), (formula) =>
        MONEY.test(formula) ? formula : `[${"a".repeat(formula.length - 2)}]`,
      ),
  },
};

let katex, loading;
const drawn = new Map(); // source → the formula, to be copied

// KaTeX makes elements and never HTML, so what it makes needs no sanitizer, which would have to let styles and MathML through for all texts.
// A text's formulas come to it as the sanitizer left them: spans that hold nothing but their source.
export function typeset(root) {
  for (const span of root.querySelectorAll(".math")) {
    if (drawn.has(span.textContent)) put(span, span.textContent);
    else load().then(() => later(() => span.isConnected && draw(span)));
  }
}

function load() {
  loading ??= Promise.all([import("../vendor/katex/katex.mjs"), style()]).then(
    ([module]) => (katex = module.default),
  );
  return loading.catch(() => (loading = undefined)); // and try again with the next formula
}

function style() {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL("../vendor/katex/katex.min.css", import.meta.url);
  document.head.append(link);
  return new Promise((resolve, reject) =>
    Object.assign(link, { onload: resolve, onerror: reject }),
  );
}

function draw(span) {
  const source = span.textContent;
  if (!katex || span.querySelector(".katex")) return;
  if (drawn.size >= REMEMBERED) drawn.delete(drawn.keys().next().value);
  drawn.set(source, formula(source, span.matches(".display")));
  put(span, source);
}

// The elements of a formula; of a wrong one its source, with what is wrong.
function formula(source, displayMode) {
  const made = document.createElement("span");
  const words = source.replace(/^\$?\$|\$?\$$|^\\[([]|\\[)\]]$/g, "").trim();
  try {
    if (words.length > LONGEST) throw new Error("too long");
    katex.render(words, made, { ...OPTIONS, displayMode });
    if (depth(made) > DEEPEST) throw new Error("too deep");
  } catch (problem) {
    made.textContent = source;
    made.title = problem.message;
  }
  return made;
}

function depth(root) {
  let depth = 0;
  for (let level = [root]; level.length; level = level.flatMap(({ children }) => [...children]))
    depth += 1;
  return depth;
}

function put(span, source) {
  const made = drawn.get(source).cloneNode(true);
  if (made.title) span.title = made.title;
  span.replaceChildren(...made.childNodes);
  if (span.matches(".display, .wide")) reachable(span, span.firstElementChild ?? span);
}
