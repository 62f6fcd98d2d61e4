// Find formulas in markdown and render them with KaTeX, which is loaded with the first formula.

import { enableKeyboardScrolling } from "./keyboard_scrolling.js";
import { scheduleTask } from "./task_scheduler.js";

const MAX_CHARACTERS = 4000; // a longer formula stays as it was written
// Nested elements, about thirty fractions; a thousand levels crash the browser's layout.
const MAX_DEPTH = 250;
const WIDE_CHARACTERS = 32; // a longer formula may be wider than a phone
const CACHE_SIZE = 500;
const OPENING = /^ {0,3}(\$\$(?!\$)|\\\[)/;
const CLOSING = { $$: "$$", "\\[": "\\]", "\\(": "\\)" };
// One line; not “$5 and $10”.
const INLINE = String.raw`\$(?![\s$])(?:\\.|[^\\$\n${"`"}])*?[^\s\\$\n${"`"}]\$(?![\p{L}\p{N}$])`;
const DOLLARS = new RegExp(`^${INLINE}`, "u");
const MONEY = /^\$\d[\d.,]*(?:[kKmMbB%]|\s?%)?[,;:.]?\s+\p{L}{2}/u; // “$5 or more, so 10$”
const KATEX_OPTIONS = {
  throwOnError: true,
  trust: false,
  strict: "ignore",
  maxExpand: 200,
  maxSize: 15,
  errorColor: "currentColor",
};

// Find where the formula that was opened before `from` is closed. Return −1 when a blank line or
// the end of the text comes first.
function findClosing(src, from, closing) {
  const end = findBlankLine(src, from);
  for (
    let at = src.indexOf(closing, from);
    at >= 0 && at < end;
    at = src.indexOf(closing, at + 1)
  ) {
    if (/(?<!\\)(?:\\\\)*$/.test(src.slice(Math.max(from, at - 8), at))) return at;
  }
  return -1;
}

function findBlankLine(src, from) {
  const at = src.slice(from).search(/\n[ \t]*\n/);
  return at < 0 ? src.length : from + at;
}

// A line that opens a formula begins a block up to the end of the line that closes it. An unclosed
// formula goes up to the next blank line and is shown as it was written, so that a formula that
// still arrives is never shown as a list or a heading.
const block = {
  name: "formula",
  level: "block",
  start: (src) => {
    const match = /\n(?:[ \t]*\n| {0,3}(\$\$(?!\$)|\\\[))/.exec(src);
    return match?.[1] ? match.index + 1 : undefined;
  },
  tokenizer(src) {
    const [opening, mark] = OPENING.exec(src) ?? [];
    if (!opening) return undefined;
    const at = findClosing(src, opening.length, CLOSING[mark]);
    const line = at < 0 ? -1 : src.indexOf("\n", at);
    const end = at < 0 ? findBlankLine(src, 0) : line < 0 ? src.length : line;
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
        ? matchDollars(src, tokens.at(-1)?.raw.at(-1) ?? "")
        : src[0] === "\\"
          ? matchBrackets(src)
          : "";
    return raw ? { type: "math", raw } : undefined;
  },
  renderer: ({ raw }) => `<span class="${getClassName(raw)}">${escapeHtml(raw)}</span>`,
};

function getClassName(raw) {
  if (/^(?:\$\$|\\\[)/.test(raw)) return "math display";
  return raw.length > WIDE_CHARACTERS ? "math wide" : "math";
}

function matchDollars(src, before) {
  if (src.startsWith("$$")) return matchDelimited(src, "$$");
  if (/[\p{L}\p{N}$]/u.test(before)) return "";
  const [raw] = DOLLARS.exec(src) ?? [""];
  return MONEY.test(raw) ? "" : raw;
}

function matchBrackets(src) {
  const opening = src.slice(0, 2);
  if (opening !== "\\(" && opening !== "\\[") return "";
  const raw = matchDelimited(src, opening);
  // \[an escaped link\](…)
  return opening === "\\[" && /^[([]/.test(src.slice(raw.length)) ? "" : raw;
}

function matchDelimited(src, opening) {
  const at = findClosing(src, 2, CLOSING[opening]);
  return at < 0 || !src.slice(2, at).trim() ? "" : src.slice(0, at + 2);
}

function escapeHtml(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

export const math = {
  extensions: [block, inline],
  tokenizer: {
    // An underline inside a formula does not turn the text before it into a heading.
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

let katex;
let loading;
const formulaCache = new Map(); // source → rendered element, to be cloned

// KaTeX creates elements, not HTML. Its result therefore does not need the sanitizer, which would
// otherwise have to allow styles and MathML in all texts. The sanitizer has already checked the
// spans, which hold only the source of the formulas.
export function typesetMath(root) {
  for (const span of root.querySelectorAll(".math")) {
    if (formulaCache.has(span.textContent)) insertFormula(span, span.textContent);
    else loadKatex().then(() => scheduleTask(() => span.isConnected && drawFormula(span)));
  }
}

function loadKatex() {
  loading ??= Promise.all([import("../vendor/katex/katex.mjs"), loadStylesheet()]).then(
    ([module]) => (katex = module.default),
  );
  return loading.catch(() => (loading = undefined)); // the next formula tries again
}

function loadStylesheet() {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL("../vendor/katex/katex.min.css", import.meta.url);
  document.head.append(link);
  return new Promise((resolve, reject) =>
    Object.assign(link, { onload: resolve, onerror: reject }),
  );
}

function drawFormula(span) {
  const source = span.textContent;
  if (!katex || span.querySelector(".katex")) return;
  if (formulaCache.size >= CACHE_SIZE) formulaCache.delete(formulaCache.keys().next().value);
  formulaCache.set(source, renderFormula(source, span.matches(".display")));
  insertFormula(span, source);
}

// Render a formula. A wrong one shows its source, with the error as its title.
function renderFormula(source, displayMode) {
  const element = document.createElement("span");
  const words = source.replace(/^\$?\$|\$?\$$|^\\[([]|\\[)\]]$/g, "").trim();
  try {
    if (words.length > MAX_CHARACTERS) throw new Error("too long");
    katex.render(words, element, { ...KATEX_OPTIONS, displayMode });
    if (measureDepth(element) > MAX_DEPTH) throw new Error("too deep");
  } catch (problem) {
    element.textContent = source;
    element.title = problem.message;
  }
  return element;
}

function measureDepth(root) {
  let depth = 0;
  for (let level = [root]; level.length; level = level.flatMap(({ children }) => [...children]))
    depth += 1;
  return depth;
}

function insertFormula(span, source) {
  const element = formulaCache.get(source).cloneNode(true);
  if (element.title) span.title = element.title;
  span.replaceChildren(...element.childNodes);
  if (span.matches(".display, .wide"))
    enableKeyboardScrolling(span, span.firstElementChild ?? span);
}
