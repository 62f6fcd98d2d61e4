// Messages that cannot go yet, while an answer is being generated or the server is not reached: they wait above the composer, and go one by one.

import { api } from "./api.js";
import { keep, kept, whenKeptElsewhere } from "./keeping.js";
import { snackbar } from "./snackbar.js";
import { say } from "./words.js";

const TRY_AGAIN_MS = 5000;

// Whether the message may arrive when it is sent once more: the server is away or has no one signed in, or answers another one.
export const waits = ({ status, type }) =>
  status === 0 || status === 401 || type === "turn_running" || type === "turn_waiting";

export const unsure = ({ status }) => status === 0;

// Every tab of the chat shows the same queue. Two that send at once send the same message under the same key: it arrives once.
export class Queue {
  #waiting = []; // {content, key, files, unsure}; unsure of whether it arrived: nobody heard the answer
  #held = ""; // why nothing is sent before the user says so: the key of its words
  #sending = false;
  #timer;

  constructor(chat, composer) {
    this.chat = chat;
    this.composer = composer;
    this.list = chat.querySelector(".queued");
    this.note = chat.querySelector(".queued-note");
    this.list.addEventListener("click", ({ target }) => this.#click(target.closest("button")));
    whenKeptElsewhere("queue", chat, (stored) => this.#show(stored));
    this.#show(kept("queue", chat.session));
  }

  // Whether something will go by itself: what is written now goes after it.
  get inLine() {
    return this.#waiting.length > 0 && !this.#held;
  }

  add(message) {
    this.#change((waiting) => [...waiting, message]);
    this.#later();
  }

  // The chat may be free; or it answers a message of which nobody heard that it arrived.
  resume() {
    this.#send();
  }

  hold(why) {
    this.#change((waiting) => waiting, why);
  }

  async #send() {
    clearTimeout(this.#timer);
    const [message] = this.#waiting;
    if (!message || this.#held || this.#sending || (this.chat.busy && !message.unsure)) return;
    this.#sending = true;
    try {
      await this.chat.post(
        message.content,
        message.key,
        message.files.map((file) => file.id),
      );
      this.#remove(message);
    } catch (problem) {
      if (waits(problem))
        this.#change((waiting) =>
          waiting.map((other) =>
            other.key === message.key ? { ...other, unsure: unsure(problem) } : other,
          ),
        );
      else this.#refused(problem);
    } finally {
      this.#sending = false;
    }
    this.#later();
  }

  // What is heard of the chat sends the next one; this is for what is not heard.
  #later() {
    clearTimeout(this.#timer);
    if (this.inLine && !(this.chat.busy && !this.#waiting[0].unsure))
      this.#timer = setTimeout(() => this.#send(), TRY_AGAIN_MS);
  }

  #refused(problem) {
    this.hold("queueRefused");
    snackbar(say("notSent", { why: problem.message }));
  }

  #remove({ key }) {
    this.#change((waiting) => waiting.filter((other) => other.key !== key));
  }

  #click(button) {
    const message = this.#waiting[[...this.list.children].indexOf(button?.closest("li"))];
    if (!message || this.#sending) return;
    if (button.dataset.queue === "send") {
      this.hold("");
      return this.#send();
    }
    this.#remove(message);
    if (button.dataset.queue === "edit") this.composer.takeBack(message);
    else
      for (const file of message.files)
        api("DELETE", `attachments/${file.id}`).catch((problem) => console.warn(problem));
    this.composer.field.focus();
  }

  // Another tab may have changed it in this moment.
  #change(changed, held = this.#held) {
    const there = kept("queue", this.chat.session);
    const waiting = changed(there === undefined ? this.#waiting : (there?.waiting ?? []));
    const stored = waiting.length ? { waiting, held } : null;
    keep("queue", this.chat.session, stored);
    this.#show(stored);
  }

  #show(stored) {
    this.#waiting = stored?.waiting ?? [];
    this.#held = stored?.held ?? "";
    this.list.replaceChildren(...this.#waiting.map((message) => this.#item(message)));
    this.list.toggleAttribute("data-held", Boolean(this.#held));
    this.list.hidden = !this.#waiting.length;
    this.note.textContent = this.#held ? say(this.#held) : "";
  }

  #item({ content, files }) {
    const [item] = this.chat.timeline.stamp("queued-piece");
    item.querySelector(".queued-words").textContent =
      content || files.map((file) => file.name).join(", ");
    return item;
  }
}
