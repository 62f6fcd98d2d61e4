// A block of code: its frame, its lines as they come, and its colors once it is whole.

import { later } from "./later.js";
import { reachable } from "./reachable.js";
import { say } from "./words.js";

const LINES = 50; // that are laid out together, so that a line more does not cost a long block anew
const asked = new Map(); // number → what to do with the colors
let painter,
  number = 0;

// The colors of a text, for each chunk of its lines; none where the language is not known.
function colors(language, text, take) {
  painter ??= worker();
  asked.set(++number, take);
  painter.postMessage({ id: number, language, text, lines: LINES });
}

function worker() {
  const started = new Worker(new URL("./coloring.js", import.meta.url), { type: "module" });
  started.addEventListener("message", ({ data: { id, chunks } }) => {
    asked.get(id)(chunks);
    asked.delete(id);
  });
  return started;
}

function painted([...words]) {
  return words.map((word) => {
    if (typeof word === "string") return word;
    const span = document.createElement("span");
    [span.className] = word;
    span.append(...painted(word.slice(1)));
    return span;
  });
}

function language(token) {
  return token.lang?.match(/^\S*/)[0] ?? "";
}

export class Code {
  #chunks = []; // the text of each
  #code = document.createElement("code");
  #colored = false;

  constructor(token) {
    this.language = language(token);
    this.nodes = [this.#frame()];
  }

  takes(token) {
    return token.type === "code" && language(token) === this.language;
  }

  update(token, { done }) {
    const lines = token.text ? `${token.text.replace(/\n$/, "")}\n`.split(/(?<=\n)/) : [];
    const chunks = Array.from({ length: Math.ceil(lines.length / LINES) }, (_, at) =>
      lines.slice(at * LINES, (at + 1) * LINES).join(""),
    );
    const changed = chunks.map((chunk, at) => at).filter((at) => chunks[at] !== this.#chunks[at]);
    for (const at of changed)
      (
        this.#code.children[at] ?? this.#code.appendChild(document.createElement("span"))
      ).textContent = chunks[at];
    while (this.#code.children.length > chunks.length) this.#code.lastChild.remove();
    this.#chunks = chunks;
    if (done && (changed.length || !this.#colored)) this.#color(chunks);
  }

  #color(chunks) {
    this.#colored = true;
    if (this.language && chunks.length)
      colors(this.language, chunks.join(""), (colored) => {
        colored.forEach((words, at) =>
          later(
            () =>
              this.#chunks === chunks && this.#code.children[at].replaceChildren(...painted(words)),
          ),
        );
      });
  }

  #frame() {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const name = document.createElement("span");
    const copy = document.createElement("button");
    const pre = document.createElement("pre");
    figure.className = "code";
    name.textContent = this.language;
    copy.type = "button";
    copy.dataset.copyCode = "";
    copy.textContent = say("copy");
    caption.append(name, copy);
    pre.append(this.#code);
    figure.append(caption, pre);
    reachable(pre, this.#code);
    return figure;
  }
}
