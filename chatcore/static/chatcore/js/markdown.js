// Render markdown. This is the only module that turns text into HTML, and all of that HTML passes
// the sanitizer.

import { Marked } from "../vendor/marked.esm.js";
import DOMPurify from "../vendor/purify.es.js";
import { cjkEmphasis } from "./cjk_emphasis.js";
import { isVisible, updateParts } from "./markdown_parts.js";
import { collectLabels, footnotes, isFootnoteLink } from "./footnotes.js";
import { math, typesetMath } from "./math.js";
import { nestedFences, opensMarkdown } from "./nested_fences.js";

const TAGS =
  "a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i img kbd " +
  "li mark ol p pre s span strong sub sup table tbody td th thead tr ul";
const SANITIZER_OPTIONS = {
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", "title", "alt", "src", "class", "start", "align", "colspan", "rowspan"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const marked = new Marked(
  {
    gfm: true,
    renderer: {
      checkbox: ({ checked }) => (checked ? "☑ " : "☐ "), // a form field does not belong in a text
      html: ({ text }) => escapeHtml(text),
    },
    // A footnote is not the address of a link.
    tokenizer: { def: (src) => (/^ {0,3}\[\^/.test(src) ? undefined : false) },
  },
  cjkEmphasis,
  math,
  footnotes,
  nestedFences.extension,
);

// Show HTML in markdown as text, except for plain tags that format. The sanitizer runs afterwards.
function escapeHtml(html) {
  const escaped = html.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return escaped.replace(
    /&lt;(\/?(?:b|br|code|em|i|kbd|mark|s|strong|sub|sup))\s*\/?&gt;/gi,
    "<$1>",
  );
}

const purify = DOMPurify(window);
purify.setConfig(SANITIZER_OPTIONS);
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") secureLink(node);
  if (
    node.tagName === "IMG" &&
    !/^data:image\/(png|jpeg|gif|webp);/i.test(node.getAttribute("src") ?? "")
  )
    replaceWithLink(node);
  if (node.hasAttribute?.("class") && !/^(note|math( display| wide)?)$/.test(node.className))
    node.removeAttribute("class");
});

function secureLink(link) {
  const address = link.getAttribute("href") ?? "";
  if (isFootnoteLink(address)) return;
  if (!/^(https?:|mailto:)/i.test(address)) link.removeAttribute("href");
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
}

// Replace an external image with a link. Loading it would tell its server who reads this text.
function replaceWithLink(image) {
  const link = document.createElement("a");
  const source = image.getAttribute("src") ?? "";
  if (/^https?:/i.test(source)) link.href = source;
  link.textContent = image.getAttribute("alt") || source || "image";
  secureLink(link);
  image.replaceWith(link);
}

// Render all entries, [token, function that takes the nodes], with one call of the sanitizer. Each
// entry is a cell of a table, and no unclosed tag can leave its cell.
function renderCells(renderQueue) {
  if (!renderQueue.length) return;
  const cells = renderQueue.map(([token]) => `<td>${renderHtml(token).replace(/\n$/, "")}</td>`);
  const fragment = purify.sanitize(`<table><tbody><tr>${cells.join("")}</tr></tbody></table>`);
  typesetMath(fragment);
  [...fragment.querySelector("tr").cells].forEach((cell, at) => {
    renderQueue[at][1]([...cell.childNodes]);
  });
}

function renderHtml(token) {
  return token.type === "words"
    ? marked.Parser.parseInline(token.tokens, marked.defaults)
    : marked.parser([token]);
}

// The pause lasts this many times the last drawing, so that a streamed text of any length takes two
// percent of the main thread.
const PAUSE_FACTOR = 50;
const MAX_PAUSE_MS = 500;

export class MarkdownView {
  #root;
  #text = "";
  #frozenLength = 0; // characters whose blocks do not change any more
  #openParts = []; // the parts of the blocks after them
  #timer = 0;
  #frame = 0;
  #nextDrawTime = 0; // the earliest time of the next drawing
  #labels = new Set(); // of the text's notes
  #growingBlock = null; // the block that is being written

  constructor(root) {
    this.#root = root;
  }

  get text() {
    return this.#text;
  }

  // Show a text that still grows. Draw at most once a frame, and only the blocks that can still
  // change.
  showPartial(text) {
    this.#text = text.replace(/\r\n?/g, "\n");
    this.#timer ||= setTimeout(
      () => (this.#frame = requestAnimationFrame((startedAt) => this.#drawFrame(startedAt))),
      this.#nextDrawTime - performance.now(),
    );
  }

  #drawFrame(startedAt) {
    this.#timer = 0;
    this.#draw(false);
    setTimeout(() => {
      const now = performance.now(); // after layout and paint
      this.#nextDrawTime = now + Math.min(MAX_PAUSE_MS, PAUSE_FACTOR * (now - startedAt));
    });
  }

  // Show the complete text.
  showFinal(text) {
    clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
    this.#timer = 0;
    this.#text = text.replace(/\r\n?/g, "\n");
    // A link or a note that is defined at the end may be used at the beginning.
    const labels = collectLabels(this.#text);
    if (labels.size || /^ {0,3}\[[^\]^][^\]]*\]:/m.test(this.#text) || opensMarkdown(this.#text))
      this.#reset();
    this.#labels = labels;
    this.#draw(true);
  }

  #reset() {
    this.#frozenLength = 0;
    this.#openParts = [];
    this.#root.replaceChildren();
  }

  // Markdown that is nested too deeply for the parser is shown as plain text.
  #draw(done) {
    try {
      this.#updateBlocks(done);
    } catch (problem) {
      console.warn(problem);
      this.#reset();
      this.#root.textContent = this.#text;
    }
  }

  #updateBlocks(done) {
    if (!("shown" in this.#root.dataset)) this.#reset();
    this.#root.dataset.shown = "";
    const openText = this.#text.slice(this.#frozenLength);
    footnotes.labels = this.#labels;
    nestedFences.isFinal = done;
    const tokens = marked.lexer(openText);
    const blocks = tokens.filter(isVisible).map(createBlock);
    const renderQueue = [];
    updateParts(this.#openParts, this.#root, blocks, { done, renderQueue });
    renderCells(renderQueue);
    this.#markGrowing(done ? null : this.#root.lastElementChild);
    const settledTokens = done ? tokens : findSettled(tokens, openText);
    this.#openParts.splice(0, settledTokens.filter(isVisible).length);
    this.#frozenLength += settledTokens.reduce((sum, { raw }) => sum + raw.length, 0);
  }

  #markGrowing(block) {
    if (block === this.#growingBlock) return;
    this.#growingBlock?.classList.remove("growing");
    block?.classList.add("growing");
    this.#growingBlock = block;
  }
}

function createBlock(token) {
  return {
    type: "block",
    className: token.type === "heading" ? "block titled" : "block",
    raw: token.raw,
    tokens: [token],
  };
}

// Return the tokens that cannot change any more: two complete lines follow them. One line is enough
// for every block except a table, which needs its second line.
function findSettled(tokens, text) {
  const last = text.lastIndexOf("\n");
  const settledEnd = last > 0 ? text.lastIndexOf("\n", last - 1) : -1;
  let start = text.length;
  for (let at = tokens.length - 1; at > 0; at -= 1) {
    start -= tokens[at].raw.length;
    if (start <= settledEnd && tokens[at].type !== "space") return tokens.slice(0, at);
  }
  return [];
}

const views = new WeakMap();

export function getMarkdownView(root) {
  if (!views.has(root)) views.set(root, new MarkdownView(root));
  return views.get(root);
}
