// Where messages are written: sending, stopping, choosing the model. What was typed is lost only when it has arrived.

import { Attaching } from "./attaching.js";
import { keep, kept, whenKeptElsewhere } from "./keeping.js";
import { Queue, unsure, waits } from "./queue.js";
import { snackbar } from "./snackbar.js";
import { say } from "./words.js";

export class Composer {
  #tried = null; // {key, said}: the same, sent once more, goes under the same key and arrives once

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
    this.picker.addEventListener("change", () => {
      this.#named();
      chat.changeModel(this.picker.value);
    });
    this.#named();
    if (!this.field.value) this.#take(kept("draft", chat.session)); // else someone was faster than this script
    this.files = new Attaching(chat, this);
    this.queue = new Queue(chat, this);
    this.#drawn();
    // A field that shows what another tab had shows what it has now.
    whenKeptElsewhere("draft", chat, (now, before) => {
      if (this.field.value !== (before?.text ?? "")) return;
      this.#take(now);
      this.#drawn();
    });
  }

  get model() {
    return this.picker.value;
  }

  get window() {
    return Number(this.picker.selectedOptions[0]?.dataset.window) || null;
  }

  set model(name) {
    if ([...this.picker.options].some((option) => option.value === name)) this.picker.value = name;
    this.#named();
  }

  #named() {
    this.form.querySelector(".picker-name").textContent =
      this.picker.selectedOptions[0]?.dataset.name ?? "";
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
    try {
      if (!this.chat.session) await this.#begin();
      await this.#sendOrQueue(content);
      this.#tried = null;
      if (this.field.value === content) this.field.value = "";
      this.#typed();
    } catch (problem) {
      snackbar(say("notSent", { why: problem.message }));
    } finally {
      this.sendButton.dataset.state = "idle";
    }
  }

  // What is written belongs to the chat that is stored now.
  async #begin() {
    await this.chat.begin();
    keep("draft", "", null);
    this.#keep();
  }

  async #sendOrQueue(content) {
    const ids = await this.files.ids(this.chat.session);
    const key = this.#keyOf(JSON.stringify([content, ids]));
    const queue = (fields) => this.queue.add({ content, key, files: this.files.take(), ...fields });
    if (this.generating || this.queue.inLine) return queue();
    try {
      await this.chat.post(content, key, ids);
      this.files.take();
    } catch (problem) {
      if (!waits(problem)) throw problem;
      queue({ unsure: unsure(problem) });
    }
  }

  // Kept before it is used: whoever reloads now sends the same under the same key.
  #keyOf(said) {
    if (this.#tried?.said !== said)
      this.#tried = { key: crypto.randomUUID?.() ?? String(Math.random()).slice(2), said }; // randomUUID needs https or localhost
    this.#keep();
    return this.#tried.key;
  }

  #typed() {
    this.#drawn();
    this.#keep();
  }

  #drawn() {
    this.changed();
    this.chat.meter.draft(this.field.value);
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  #keep() {
    const text = this.field.value;
    keep("draft", this.chat.session, text ? { text, tried: this.#tried } : null);
  }

  // A draft as it was kept.
  #take(draft) {
    this.field.value = draft?.text ?? "";
    this.#tried = draft?.tried ?? null;
  }
}
