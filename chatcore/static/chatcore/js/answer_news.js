// Tell somebody who looks elsewhere that an answer has ended: a dot before the title of the tab,
// and for a long answer a notification, if the person wants any.

import { showCount } from "./chat_news.js";
import { areNotificationsOn, notify } from "./notifications.js";
import { getText } from "./texts.js";

const LONG_MS = 10000;
const DOT = "● ";

export class AnswerNews {
  #startedAt = null;
  #hasNews = false;

  constructor(chat) {
    this.chat = chat;
    document.addEventListener("visibilitychange", () => document.hidden || this.#setDot(false));
  }

  begin() {
    this.#startedAt ??= Date.now();
  }

  // Call it once an answer has ended, however it did.
  end() {
    const startedAt = this.#startedAt;
    this.#startedAt = null;
    if (startedAt === null || !document.hidden) return;
    this.#setDot(true);
    if (Date.now() - startedAt > LONG_MS && areNotificationsOn())
      notify(this.#title, getText("answerEnded"), this.chat.session).catch((problem) =>
        console.warn(problem),
      );
  }

  get #title() {
    return this.chat.querySelector(".chat-title").textContent;
  }

  #setDot(hasNews) {
    this.#hasNews = hasNews;
    this.showTitle();
  }

  // Write the title of the tab.
  showTitle() {
    document.title = `${this.#hasNews ? DOT : ""}${this.#title} · Chatcore`;
    showCount();
  }
}
