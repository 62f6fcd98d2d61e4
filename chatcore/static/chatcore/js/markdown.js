// Markdown to elements. The only module that turns text into HTML: what a model wrote passes the sanitizer here, or it is not shown.

import DOMPurify from "../vendor/purify.es.js";
import { Marked } from "../vendor/marked.esm.js";
import { math, typeset } from "./math.js";
import { bring, isShown } from "./parts.js";

const ALLOWED = {
  ALLOWED_TAGS: [
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
  ],
  ALLOWED_ATTR: ["href", "title", "alt", "src", "class", "start", "align", "colspan", "rowspan"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const marked = new Marked(
  {
    gfm: true,
    renderer: {
      checkbox: ({ checked }) => (checked ? "☑ " : "☐ "), // a form's field has no place in a text
      html: ({ text }) => shownAsWritten(text),
    },
    tokenizer: { def: (src) => (/^ {0,3}\[\^/.test(src) ? undefined : false) }, // a footnote is no link's address
  },
  math,
);

// HTML in markdown is shown as it was written, but for plain tags that only shape a text. The sanitizer stays behind it.
function shownAsWritten(html) {
  const escaped = html.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return escaped.replace(
    /&lt;(\/?(?:b|br|code|em|i|kbd|mark|s|strong|sub|sup))\s*\/?&gt;/gi,
    "<$1>",
  );
}

const purify = DOMPurify(window);
purify.setConfig(ALLOWED);
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") openElsewhere(node);
  if (
    node.tagName === "IMG" &&
    !/^data:image\/(png|jpeg|gif|webp);/i.test(node.getAttribute("src") ?? "")
  )
    linkInstead(node);
  if (node.hasAttribute?.("class") && !/^math( display| wide)?$/.test(node.className))
    node.removeAttribute("class");
});

function openElsewhere(link) {
  if (!/^(https?:|mailto:)/i.test(link.getAttribute("href") ?? "")) link.removeAttribute("href");
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
}

// An image from elsewhere would tell its server who reads this, and what: it becomes a link.
function linkInstead(image) {
  const link = document.createElement("a");
  const source = image.getAttribute("src") ?? "";
  if (/^https?:/i.test(source)) link.href = source;
  link.textContent = image.getAttribute("alt") || source || "image";
  openElsewhere(link);
  image.replaceWith(link);
}

// Draw all that is on the canvas: [token, what takes its nodes]. Each is a table's cell for the sanitizer, which no open tag gets out of.
function draw(canvas) {
  if (!canvas.length) return;
  const cells = canvas.map(([token]) => `<td>${html(token).replace(/\n$/, "")}</td>`);
  const drawn = purify.sanitize(`<table><tbody><tr>${cells.join("")}</tr></tbody></table>`);
  typeset(drawn);
  [...drawn.querySelector("tr").cells].forEach((cell, at) => {
    canvas[at][1]([...cell.childNodes]);
  });
}

function html(token) {
  return token.type === "words"
    ? marked.Parser.parseInline(token.tokens, marked.defaults)
    : marked.parser([token]);
}

const REST = 50; // times as long as the last drawing took: a text that streams takes a fiftieth of the main thread, however long it is
const LONGEST_REST_MS = 500;

export class MarkdownView {
  #root;
  #text = "";
  #frozen = 0; // characters whose blocks are final
  #loose = []; // the blocks after them
  #timer = 0;
  #frame = 0;
  #rested = 0; // when it may be drawn again
  #growing = null; // the block that is being written

  constructor(root) {
    this.#root = root;
  }

  get text() {
    return this.#text;
  }

  // A text that is still growing: drawn at most once a frame, and of it only what may still change.
  grow(text) {
    this.#text = text.replace(/\r\n?/g, "\n");
    this.#timer ||= setTimeout(
      () => (this.#frame = requestAnimationFrame((begun) => this.#next(begun))),
      this.#rested - performance.now(),
    );
  }

  #next(begun) {
    this.#timer = 0;
    this.#draw(false);
    setTimeout(() => {
      const now = performance.now(); // laid out and painted too
      this.#rested = now + Math.min(LONGEST_REST_MS, REST * (now - begun));
    });
  }

  // The whole text.
  finish(text) {
    clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
    this.#timer = 0;
    this.#text = text.replace(/\r\n?/g, "\n");
    if (/^ {0,3}\[[^\]^][^\]]*\]:/m.test(this.#text)) this.#forget(); // a link defined at the end may be used at the beginning
    this.#draw(true);
  }

  #forget() {
    this.#frozen = 0;
    this.#loose = [];
    this.#root.replaceChildren();
  }

  // What is nested deeper than the reader follows is shown as it was written.
  #draw(done) {
    try {
      this.#bring(done);
    } catch (problem) {
      console.warn(problem);
      this.#forget();
      this.#root.textContent = this.#text;
    }
  }

  #bring(done) {
    if (!("shown" in this.#root.dataset)) this.#forget();
    this.#root.dataset.shown = "";
    const loose = this.#text.slice(this.#frozen);
    const tokens = marked.lexer(loose);
    const blocks = tokens.filter(isShown).map(block);
    const canvas = [];
    bring(this.#loose, this.#root, blocks, { done, canvas });
    draw(canvas);
    this.#growAt(done ? null : this.#root.lastElementChild);
    const final = done ? tokens : settled(tokens, loose);
    this.#loose.splice(0, final.filter(isShown).length);
    this.#frozen += final.reduce((sum, { raw }) => sum + raw.length, 0);
  }

  #growAt(block) {
    if (block === this.#growing) return;
    this.#growing?.classList.remove("growing");
    block?.classList.add("growing");
    this.#growing = block;
  }
}

function block(token) {
  return {
    type: "block",
    className: token.type === "heading" ? "block titled" : "block",
    raw: token.raw,
    tokens: [token],
  };
}

// The tokens that nothing changes any more: two whole lines of what follows are there. One says what it is when it is whole, but the head of a
// table only when the second is.
function settled(tokens, text) {
  const last = text.lastIndexOf("\n");
  const whole = last > 0 ? text.lastIndexOf("\n", last - 1) : -1;
  let start = text.length;
  for (let at = tokens.length - 1; at > 0; at -= 1) {
    start -= tokens[at].raw.length;
    if (start <= whole && tokens[at].type !== "space") return tokens.slice(0, at);
  }
  return [];
}

const views = new WeakMap();

export function viewOf(root) {
  if (!views.has(root)) views.set(root, new MarkdownView(root));
  return views.get(root);
}
