// Show a block of code: its frame, its lines while they arrive, and its colors when it is complete.

import { enableKeyboardScrolling } from "./keyboard_scrolling.js";
import { scheduleTask } from "./task_scheduler.js";
import { getText } from "./texts.js";

// In one element, so that a new line does not cost the layout of the whole block.
const LINES_PER_CHUNK = 50;
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

export class CodeBlock {
  #chunks = []; // the text of each chunk
  #code = document.createElement("code");
  #colored = false;

  constructor(token) {
    this.language = getLanguage(token);
    this.nodes = [this.#createFrame()];
  }

  accepts(token) {
    return token.type === "code" && getLanguage(token) === this.language;
  }

  update(token, { done }) {
    const lines = token.text ? `${token.text.replace(/\n$/, "")}\n`.split(/(?<=\n)/) : [];
    const chunks = Array.from({ length: Math.ceil(lines.length / LINES_PER_CHUNK) }, (_, at) =>
      lines.slice(at * LINES_PER_CHUNK, (at + 1) * LINES_PER_CHUNK).join(""),
    );
    const changed = chunks.map((chunk, at) => at).filter((at) => chunks[at] !== this.#chunks[at]);
    for (const at of changed)
      (
        this.#code.children[at] ?? this.#code.appendChild(document.createElement("span"))
      ).textContent = chunks[at];
    while (this.#code.children.length > chunks.length) this.#code.lastChild.remove();
    this.#chunks = chunks;
    if (done && (changed.length || !this.#colored)) this.#requestColors(chunks);
  }

  #requestColors(chunks) {
    this.#colored = true;
    if (this.language && chunks.length)
      requestColors(this.language, chunks.join(""), (colored) => {
        colored.forEach((words, at) =>
          scheduleTask(
            () =>
              this.#chunks === chunks &&
              this.#code.children[at].replaceChildren(...createColoredNodes(words)),
          ),
        );
      });
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
