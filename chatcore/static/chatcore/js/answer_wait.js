// Show that the model reads, until the first word of its answer: three dots, soon how long, and how
// much of it where its server tells.

import { formatElapsed, formatShare } from "./formats.js";
import { getText } from "./texts.js";

const TOLD_AFTER_MS = 5000; // a shorter wait is not worth a number
const TICK_MS = 1000;

export class AnswerWait {
  #since;
  #timer;
  #share = null;

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
    this.#share = null;
    if (!isSilent) return;
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  // `share` of the request is read.
  tell(share) {
    if (this.element.hidden) return;
    this.#share = share;
    this.#tick();
  }

  #tick() {
    const elapsed = Date.now() - this.#since;
    const told = { time: formatElapsed(elapsed), share: formatShare(this.#share ?? 0) };
    this.element.querySelector(".waited").textContent =
      elapsed < TOLD_AFTER_MS ? "" : getText(this.#share ? "readingShare" : "reading", told);
  }
}
