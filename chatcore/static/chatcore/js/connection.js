// Whether the server is heard: a quiet line above the composer while it is not, with the way back for who was signed out.

import { say } from "./words.js";

const PATIENCE_MS = 2000; // a short break is nobody's concern

export class Connection {
  #state = "open";
  #timer;

  constructor(chat) {
    this.chat = chat;
    this.line = chat.querySelector(".connection");
    document.addEventListener("signed-out", () => (this.state = "signedOut"));
  }

  get state() {
    return this.#state;
  }

  set state(state) {
    if (state === this.#state) return;
    this.#state = state;
    clearTimeout(this.#timer);
    if (state === "lost") this.#timer = setTimeout(() => this.#show(), PATIENCE_MS);
    else this.#show();
    if (state === "open") this.chat.composer.queue.resume();
  }

  #show() {
    const { line } = this;
    line.hidden = this.#state === "open";
    line.dataset.state = this.#state;
    line.querySelector("span").textContent = line.hidden ? "" : say(this.#state);
    const link = line.querySelector("a");
    link.hidden = this.#state !== "signedOut";
    link.search = new URLSearchParams({ next: location.pathname });
  }
}
