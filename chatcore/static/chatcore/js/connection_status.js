// Show a line above the composer while there is no connection to the server.

import { getText } from "./texts.js";

const LOST_DELAY_MS = 2000; // a shorter break is not shown

export class ConnectionStatus {
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
    if (state === "lost") this.#timer = setTimeout(() => this.#render(), LOST_DELAY_MS);
    else this.#render();
    if (state === "open") this.chat.composer.queue.resume();
  }

  #render() {
    const { line } = this;
    line.hidden = this.#state === "open";
    line.dataset.state = this.#state;
    line.querySelector("span").textContent = line.hidden ? "" : getText(this.#state);
    const link = line.querySelector("a");
    link.hidden = this.#state !== "signedOut";
    link.search = new URLSearchParams({ next: location.pathname });
  }
}
