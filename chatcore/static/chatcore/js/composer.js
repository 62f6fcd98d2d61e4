// Where messages are written: sending, stopping, choosing the model. What was typed is lost only when it has arrived.

import { say } from "./words.js";
import { snackbar } from "./snackbar.js";

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
    this.sendButton.hidden = yes;
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

  #keyDown(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.#send();
  }

  async #send() {
    const content = this.field.value;
    if (!content.trim() || !this.stopButton.hidden || this.sendButton.dataset.state === "sending") return;
    this.sendButton.dataset.state = "sending";
    const draftOf = this.chat.session; // sending the first message gives the chat its session
    this.#key ??= crypto.randomUUID?.() ?? String(Math.random()).slice(2); // randomUUID needs https or localhost
    try {
      await this.chat.send(content, this.#key);
      if (this.field.value === content) this.field.value = "";
      this.#keep("", draftOf);
      this.#typed();
    } catch (problem) {
      snackbar(say("notSent", { why: problem.message }));
    } finally {
      this.sendButton.dataset.state = "idle";
    }
  }

  #typed() {
    this.#key = null;
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
