// Where messages are written: sending, stopping, choosing the model. What was typed is lost only when it has arrived.

import { Attaching } from "./attaching.js";
import { Queue } from "./queue.js";
import { snackbar } from "./snackbar.js";
import { say } from "./words.js";

export class Composer {
  #key = null; // one for each text, kept while the same text is tried again

  constructor(chat) {
    this.chat = chat;
    this.form = chat.querySelector(".composer");
    this.field = this.form.querySelector("textarea");
    this.sendButton = this.form.querySelector(".send:not(.stop)");
    this.stopButton = this.form.querySelector(".stop");
    this.picker = this.form.querySelector("select");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.field.addEventListener("keydown", (event) => this.#keyDown(event));
    this.field.addEventListener("input", () => this.#typed());
    this.stopButton.addEventListener("click", () => chat.stop());
    this.picker.addEventListener("change", () => chat.changeModel(this.picker.value));
    this.#restore();
    this.files = new Attaching(chat, this);
    this.queue = new Queue(chat, this);
    this.changed();
  }

  get model() {
    return this.picker.value;
  }

  get window() {
    return Number(this.picker.selectedOptions[0]?.dataset.window) || null;
  }

  set model(name) {
    if ([...this.picker.options].some((option) => option.value === name)) this.picker.value = name;
  }

  set generating(yes) {
    this.stopButton.hidden = !yes;
    this.changed();
  }

  get generating() {
    return !this.stopButton.hidden;
  }

  get #something() {
    return Boolean(this.field.value.trim()) || this.files.some;
  }

  // While an answer is being written, what is ready to be sent can be put behind it.
  changed() {
    const queues = this.generating;
    const label = say(queues ? "queue" : "send");
    this.sendButton.hidden = queues && !this.#something;
    this.sendButton.setAttribute("aria-label", label);
    this.sendButton.title = label;
    this.form.toggleAttribute("data-ready", this.#something);
  }

  write(text) {
    this.field.value = text;
    this.#typed();
    this.field.focus();
  }

  quote(text) {
    const before = this.field.value.trimEnd();
    this.write(`${before && `${before}\n\n`}${text.trimEnd().replace(/^/gm, "> ")}\n\n`);
    this.field.setSelectionRange(this.field.value.length, this.field.value.length);
  }

  // Out of the queue, before what is being written.
  takeBack({ content, files }) {
    this.write([content, this.field.value].filter((text) => text.trim()).join("\n\n"));
    this.files.give(files);
  }

  #keyDown(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.#send();
  }

  async #send() {
    const content = this.field.value;
    if (!this.#something || this.sendButton.dataset.state === "sending") return;
    this.sendButton.dataset.state = "sending";
    const draftOf = this.chat.session; // sending the first message gives the chat its session
    this.#key ??= crypto.randomUUID?.() ?? String(Math.random()).slice(2); // randomUUID needs https or localhost
    try {
      await this.#sendOrQueue(content, this.#key);
      if (this.field.value === content) this.field.value = "";
      this.#keep("", draftOf);
      this.#typed();
    } catch (problem) {
      snackbar(say("notSent", { why: problem.message }));
    } finally {
      this.sendButton.dataset.state = "idle";
    }
  }

  async #sendOrQueue(content, key) {
    if (!this.chat.session) await this.chat.begin();
    const ids = await this.files.ids(this.chat.session);
    if (this.generating) return this.queue.add({ content, key, files: this.files.take() });
    await this.chat.post(content, key, ids);
    this.files.take();
  }

  #typed() {
    this.#key = null;
    this.changed();
    this.chat.meter.draft(this.field.value);
    if (!CSS.supports("field-sizing", "content")) {
      this.field.style.height = "auto";
      this.field.style.height = `${this.field.scrollHeight}px`;
    }
    this.#keep(this.field.value);
  }

  // A draft outlives a reload, not the tab.
  #keep(text, session = this.chat.session) {
    try {
      if (text) sessionStorage.setItem(`draft:${session}`, text);
      else sessionStorage.removeItem(`draft:${session}`);
    } catch {
      // Storage is forbidden or full; the draft lives in the field alone.
    }
  }

  #restore() {
    try {
      this.field.value ||= sessionStorage.getItem(`draft:${this.chat.session}`) ?? "";
    } catch {
      // See #keep.
    }
    this.chat.meter.draft(this.field.value);
  }
}
