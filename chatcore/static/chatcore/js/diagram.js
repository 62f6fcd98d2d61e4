// Show the diagram that a block of code describes, in a frame that cannot reach the page.

import { getText } from "./texts.js";

const LANGUAGE = "mermaid";
const MAX_CHARACTERS = 20_000; // a longer text takes a browser too long
const MAX_HEIGHT = 4000; // pixels
const PATIENCE_MS = 30_000;

// A page that may hold no frames, as a shared one, does not name the page of the frame.
export const isDiagram = (language) =>
  language === LANGUAGE && Boolean(document.body.dataset.diagramPage);

export class Diagram {
  #frame = null;
  #timer;

  constructor(figure) {
    this.figure = figure;
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.dataset.showsDiagram = "";
    this.button.textContent = getText("showDiagram");
    this.button.addEventListener("click", () => this.#toggle());
    this.note = document.createElement("p");
    this.note.className = "diagram-note";
    this.note.setAttribute("role", "status");
    figure.append(this.note);
  }

  #toggle() {
    if (this.#frame) this.#remove();
    else this.#draw();
  }

  // The frame draws anew each time: its text or the theme may be another by now.
  #draw() {
    const text = this.figure.querySelector("code").textContent;
    this.note.textContent = "";
    if (text.length > MAX_CHARACTERS) return this.#fail();
    this.button.textContent = getText("showSource");
    const frame = document.createElement("iframe");
    this.#frame = frame;
    frame.className = "diagram";
    frame.title = getText("diagram");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.src = document.body.dataset.diagramPage;
    this.#timer = setTimeout(() => this.#fail(), PATIENCE_MS);
    addEventListener("message", this.#onMessage);
    this.note.before(frame);
  }

  // Whatever runs in the frame may send anything, so only a height is taken from it.
  #onMessage = ({ source, data }) => {
    if (!this.#frame?.isConnected) return this.#remove();
    if (source !== this.#frame.contentWindow) return;
    if (data?.isReady === true) return this.#send();
    const height = Math.min(Math.trunc(Number(data?.height)) || 0, MAX_HEIGHT);
    if (height <= 0) return this.#fail();
    clearTimeout(this.#timer);
    this.#frame.style.height = `${height}px`;
    this.figure.dataset.diagram = "shown";
  };

  #send() {
    const text = this.figure.querySelector("code").textContent;
    const { theme = "" } = document.documentElement.dataset;
    const prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const isDark = theme ? theme === "dark" : prefersDark;
    this.#frame.contentWindow.postMessage({ text, isDark }, "*"); // a frame without an origin
  }

  #fail() {
    this.#remove();
    this.note.textContent = getText("diagramFailed");
  }

  #remove() {
    clearTimeout(this.#timer);
    removeEventListener("message", this.#onMessage);
    this.#frame?.remove();
    this.#frame = null;
    delete this.figure.dataset.diagram;
    this.button.textContent = getText("showDiagram");
  }
}
