// Show that the model reads, until the first word of its answer: three dots, and soon how long.

import { formatElapsed } from "./formats.js";
import { getText } from "./texts.js";

const TOLD_AFTER_MS = 5000; // a shorter wait is not worth a number
const TICK_MS = 1000;

export class AnswerWait {
  #since;
  #timer;

  // `startedAt` is when the turn began that runs already.
  constructor(element, startedAt) {
    this.element = element;
    this.#since = startedAt;
  }

  // Call it with every event: it writes only what changed.
  show(isSilent) {
    if (this.element.hidden !== isSilent) return;
    this.element.hidden = !isSilent;
    clearInterval(this.#timer);
    this.#since = isSilent ? this.#since || Date.now() : null;
    if (!isSilent) return;
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  #tick() {
    const elapsed = Date.now() - this.#since;
    this.element.querySelector(".waited").textContent =
      elapsed < TOLD_AFTER_MS ? "" : getText("reading", { time: formatElapsed(elapsed) });
  }
}
