// Show a block of code: its frame, and its lines and colors while they arrive.

import { Diagram, isDiagram } from "./diagram.js";
import { enableKeyboardScrolling } from "./keyboard_scrolling.js";
import { scheduleTask } from "./task_scheduler.js";
import { getText } from "./texts.js";

// In one element, so that a new line does not cost the layout of the whole block.
const LINES_PER_CHUNK = 50;
// A growing block is colored at most so often, so that it takes little of the main thread.
const COLORING_PAUSE_MS = 1000;
const callbacks = new Map(); // request number → function that takes the colors
let worker;
let requestNumber = 0;

// Ask the worker for the colors of a text, chunk by chunk. An unknown language has none.
function requestColors(language, text, onColors) {
  worker ??= startWorker();
  callbacks.set(++requestNumber, onColors);
  worker.postMessage({ id: requestNumber, language, text, lines: LINES_PER_CHUNK });
}

function startWorker() {
  const started = new Worker(new URL("./highlight_worker.js", import.meta.url), { type: "module" });
  started.addEventListener("message", ({ data: { id, chunks } }) => {
    callbacks.get(id)(chunks);
    callbacks.delete(id);
  });
  return started;
}

function createColoredNodes([...words]) {
  return words.map((word) => {
    if (typeof word === "string") return word;
    const span = document.createElement("span");
    [span.className] = word;
    span.append(...createColoredNodes(word.slice(1)));
    return span;
  });
}

function getLanguage(token) {
  return token.lang?.match(/^\S*/)[0] ?? "";
}

function splitChunks(lines) {
  return Array.from({ length: Math.ceil(lines.length / LINES_PER_CHUNK) }, (_, at) =>
    lines.slice(at * LINES_PER_CHUNK, (at + 1) * LINES_PER_CHUNK).join(""),
  );
}

export class CodeBlock {
  #chunks = []; // the text of each chunk
  #code = document.createElement("code");
  #colored = []; // how much of each chunk's text has its colors
  #rests = []; // the text node with the rest of each chunk
  #isComplete = false;
  #nextColoringTime = 0;

  constructor(token) {
    this.language = getLanguage(token);
    this.nodes = [this.#createFrame()];
  }

  accepts(token) {
    return token.type === "code" && getLanguage(token) === this.language;
  }

  update(token, { done }) {
    const lines = token.text ? `${token.text.replace(/\n$/, "")}\n`.split(/(?<=\n)/) : [];
    const chunks = splitChunks(lines);
    const changed = chunks.map((chunk, at) => at).filter((at) => chunks[at] !== this.#chunks[at]);
    for (const at of changed) this.#showChunk(at, chunks[at]);
    while (this.#code.children.length > chunks.length) this.#code.lastChild.remove();
    for (const list of [this.#colored, this.#rests]) list.length = chunks.length;
    this.#chunks = chunks;
    if (done && (changed.length || !this.#isComplete)) this.#complete(chunks);
    // The last line still grows.
    else if (!done && performance.now() >= this.#nextColoringTime)
      this.#requestColors(splitChunks(lines.slice(0, -1)));
  }

  // Keep the colors of the beginning when only something is added.
  #showChunk(at, text) {
    const element =
      this.#code.children[at] ?? this.#code.appendChild(document.createElement("span"));
    if (this.#colored[at] && text.startsWith(this.#colored[at])) {
      this.#rests[at].data = text.slice(this.#colored[at].length);
      return;
    }
    this.#colored[at] = "";
    this.#rests[at] = document.createTextNode(text);
    element.replaceChildren(this.#rests[at]);
  }

  #complete(chunks) {
    if (!this.#isComplete && isDiagram(this.language)) this.#offerDiagram();
    this.#isComplete = true;
    this.#requestColors(chunks, { isFinal: true });
  }

  #offerDiagram() {
    const [figure] = this.nodes;
    figure.querySelector("[data-copy-code]").before(new Diagram(figure).button);
  }

  #requestColors(chunks, { isFinal = false } = {}) {
    if (!this.language || !chunks.length) return;
    this.#nextColoringTime = performance.now() + COLORING_PAUSE_MS;
    requestColors(this.language, chunks.join(""), (colored) => {
      colored.forEach((words, at) =>
        scheduleTask(() => {
          const isKnown = !isFinal && chunks[at] === this.#colored[at];
          if (!isKnown && this.#chunks[at]?.startsWith(chunks[at]))
            this.#colorChunk(at, chunks[at], words);
        }),
      );
    });
  }

  #colorChunk(at, text, words) {
    const rest = this.#chunks[at].slice(text.length);
    this.#colored[at] = text;
    this.#rests[at] = document.createTextNode(rest);
    this.#code.children[at].replaceChildren(...createColoredNodes(words), this.#rests[at]);
  }

  #createFrame() {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const name = document.createElement("span");
    const copy = document.createElement("button");
    const pre = document.createElement("pre");
    figure.className = "code";
    name.textContent = this.language;
    copy.type = "button";
    copy.dataset.copyCode = "";
    copy.textContent = getText("copy");
    caption.append(name, copy);
    pre.append(this.#code);
    figure.append(caption, pre);
    enableKeyboardScrolling(pre, this.#code);
    return figure;
  }
}
