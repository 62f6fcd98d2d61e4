// Messages written while an answer is being generated: they wait above the composer, and go one by one as each turn ends.

import { api } from "./api.js";
import { snackbar } from "./snackbar.js";
import { say } from "./words.js";

const CONFLICT = 409; // another turn is running: its end is heard here too

export class Queue {
  #waiting = []; // {content, key, files}
  #held = false; // a turn failed: the rest is sent when the user says so
  #sending = false;

  constructor(chat, composer) {
    this.chat = chat;
    this.composer = composer;
    this.list = chat.querySelector(".queued");
    this.list.addEventListener("click", ({ target }) => this.#click(target.closest("button")));
    this.#restore();
  }

  add(message) {
    this.#waiting.push(message);
    this.#changed();
  }

  // A turn has ended.
  next() {
    this.#held = false;
    this.#send();
  }

  hold() {
    this.#held = true;
    this.#changed();
  }

  // The page was loaded: what waited before may have its turn already.
  resume() {
    this.#send();
  }

  async #send() {
    const [message] = this.#waiting;
    if (!message || this.#held || this.#sending || this.chat.busy) return;
    this.#sending = true;
    try {
      await this.chat.post(message.content, message.key, message.files.map((file) => file.id));
      this.#waiting = this.#waiting.filter((other) => other !== message);
    } catch (problem) {
      this.#held = problem.status !== CONFLICT;
      if (this.#held) snackbar(say("notSent", { why: problem.message }));
    } finally {
      this.#sending = false;
      this.#changed();
    }
  }

  #click(button) {
    const message = this.#waiting[[...this.list.children].indexOf(button?.closest("li"))];
    if (!message || this.#sending) return;
    if (button.dataset.queue === "send") return this.next();
    this.#waiting = this.#waiting.filter((other) => other !== message);
    if (button.dataset.queue === "edit") this.composer.takeBack(message);
    else for (const file of message.files) api("DELETE", `attachments/${file.id}`).catch((problem) => console.warn(problem));
    this.#changed();
    this.composer.field.focus();
  }

  #changed() {
    this.list.replaceChildren(...this.#waiting.map((message) => this.#item(message)));
    this.list.toggleAttribute("data-held", this.#held);
    this.list.hidden = !this.#waiting.length;
    try {
      const stored = { waiting: this.#waiting, held: this.#held };
      if (this.#waiting.length) sessionStorage.setItem(`queue:${this.chat.session}`, JSON.stringify(stored));
      else sessionStorage.removeItem(`queue:${this.chat.session}`);
    } catch {
      // Storage is forbidden or full; the queue lives in the page alone.
    }
  }

  #item({ content, files }) {
    const [item] = this.chat.timeline.stamp("queued-piece");
    item.querySelector(".queued-words").textContent = content || files.map((file) => file.name).join(", ");
    return item;
  }

  #restore() {
    try {
      const stored = JSON.parse(sessionStorage.getItem(`queue:${this.chat.session}`) ?? "{}");
      this.#waiting = stored.waiting ?? [];
      this.#held = stored.held ?? false;
    } catch {
      // See #changed.
    }
    if (this.#waiting.length) this.#changed();
  }
}
