// Markdown to elements. The only module that turns text into HTML: what a model wrote passes the sanitizer here, or it is not shown.

import DOMPurify from "../vendor/purify.es.js";
import hljs from "../vendor/highlight.min.js";
import { Marked } from "../vendor/marked.esm.js";
import { say } from "./words.js";

const HIGHLIGHT_LIMIT = 60_000; // characters; longer code stays plain
const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "kbd", "li",
    "mark", "ol", "p", "pre", "s", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "title", "alt", "src", "class", "start", "align", "colspan", "rowspan"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const marked = new Marked({
  gfm: true,
  renderer: {
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "), // a form's field has no place in a text
    html: ({ text }) => shownAsWritten(text),
  },
});

// HTML in markdown is shown as it was written, but for plain tags that only shape a text. The sanitizer stays behind it.
function shownAsWritten(html) {
  const escaped = html.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return escaped.replace(/&lt;(\/?(?:b|br|code|em|i|kbd|mark|s|strong|sub|sup))\s*\/?&gt;/gi, "<$1>");
}

const purify = DOMPurify(window);
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") openElsewhere(node);
  if (node.tagName === "IMG" && !/^data:image\/(png|jpeg|gif|webp);/i.test(node.getAttribute("src") ?? "")) linkInstead(node);
  if (node.hasAttribute?.("class") && !/^(hljs|language)-[\w-]+(\s[\w-]+)*$/.test(node.className)) node.removeAttribute("class");
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

function block(token, { final }) {
  const element = document.createElement("div");
  element.className = "block";
  element.append(purify.sanitize(marked.parser([token]), ALLOWED));
  for (const code of element.querySelectorAll("pre > code")) frame(code, final);
  return element;
}

function frame(code, final) {
  const language = code.className.replace(/^language-/, "");
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const name = document.createElement("span");
  const copy = document.createElement("button");
  figure.className = "code";
  name.textContent = language;
  copy.type = "button";
  copy.dataset.copyCode = "";
  copy.textContent = say("copy");
  caption.append(name, copy);
  code.parentElement.replaceWith(figure);
  const pre = document.createElement("pre");
  pre.tabIndex = 0; // it may scroll, so it can be reached by keyboard
  pre.append(code);
  figure.append(caption, pre);
  if (final && hljs.getLanguage(language) && code.textContent.length <= HIGHLIGHT_LIMIT) {
    const colored = hljs.highlight(code.textContent, { language, ignoreIllegals: true }).value;
    code.replaceChildren(purify.sanitize(colored, ALLOWED));
  }
}

export class MarkdownView {
  #root;
  #text = "";
  #frozen = 0; // characters whose blocks are final
  #loose = []; // elements after them, made anew with every piece
  #frame = 0;

  constructor(root) {
    this.#root = root;
  }

  get text() {
    return this.#text;
  }

  // A text that is still growing: drawn at most once a frame, and of it only what may still change.
  grow(text) {
    this.#text = text.replace(/\r\n?/g, "\n");
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw(false);
    });
  }

  // The whole text.
  finish(text) {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#text = text.replace(/\r\n?/g, "\n");
    if (/^ {0,3}\[[^\]]+\]:/m.test(this.#text)) this.#forget(); // a link defined at the end may be used at the beginning
    this.#draw(true);
  }

  #forget() {
    this.#frozen = 0;
    this.#root.replaceChildren();
  }

  #draw(final) {
    if (!("shown" in this.#root.dataset)) this.#forget();
    this.#root.dataset.shown = "";
    for (const element of this.#loose) element.remove();
    const tokens = marked.lexer(this.#text.slice(this.#frozen));
    const last = final ? tokens.length : tokens.findLastIndex((token) => token.type !== "space");
    this.#loose = [];
    tokens.forEach((token, index) => this.#add(token, index < last));
  }

  #add(token, final) {
    const element = token.type === "space" || token.type === "def" ? null : block(token, { final });
    if (element) this.#root.append(element);
    if (final) this.#frozen += token.raw.length;
    else if (element) this.#loose.push(element);
  }
}

const views = new WeakMap();

export function viewOf(root) {
  if (!views.has(root)) views.set(root, new MarkdownView(root));
  return views.get(root);
}
