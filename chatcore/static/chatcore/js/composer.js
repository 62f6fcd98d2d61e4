// The form for writing a message: send, stop, choose the model. A draft is kept until it has
// arrived.

import { Attachments } from "./attachments.js";
import { loadItem, onItemChangedElsewhere, saveItem } from "./browser_storage.js";
import { canRetry, mayHaveArrived, MessageQueue } from "./message_queue.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

// Return a key that no other message has. RandomUUID needs https or localhost.
export function createKey() {
  return crypto.randomUUID?.() ?? String(Math.random()).slice(2);
}

export class Composer {
  // {key, body}; the same body is sent again under the same key, so that it arrives once.
  #lastAttempt = null;

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
    this.field.addEventListener("keydown", (event) => this.#onKeyDown(event));
    this.field.addEventListener("input", () => this.#onInput());
    this.stopButton.addEventListener("click", () => chat.cancelTurn());
    this.picker.addEventListener("change", () => {
      this.#showModelName();
      chat.changeModel(this.picker.value);
    });
    this.#showModelName();
    // The user may have typed before this script ran, and no event tells of it.
    if (this.field.value) this.#saveDraft();
    else this.#loadDraft(loadItem("draft", chat.session));
    this.files = new Attachments(chat, this);
    this.queue = new MessageQueue(chat, this);
    this.#refreshView();
    // Take over a draft from another tab, unless the text here differs from the tab's previous
    // draft.
    onItemChangedElsewhere("draft", chat, (now, before) => {
      if (this.field.value !== (before?.text ?? "")) return;
      this.#loadDraft(now);
      this.#refreshView();
    });
  }

  get model() {
    return this.picker.value;
  }

  get contextWindow() {
    return Number(this.picker.selectedOptions[0]?.dataset.window) || null;
  }

  set model(name) {
    if ([...this.picker.options].some((option) => option.value === name)) this.picker.value = name;
    this.#showModelName();
  }

  #showModelName() {
    this.form.querySelector(".picker-name").textContent =
      this.picker.selectedOptions[0]?.dataset.name ?? "";
  }

  set generating(isRunning) {
    this.stopButton.hidden = !isRunning;
    this.updateButtons();
  }

  get generating() {
    return !this.stopButton.hidden;
  }

  get #hasContent() {
    return Boolean(this.field.value.trim()) || this.files.hasFiles;
  }

  // While an answer is written, the send button queues the message.
  updateButtons() {
    const isQueueing = this.generating;
    const label = getText(isQueueing ? "queue" : "send");
    this.sendButton.hidden = isQueueing && !this.#hasContent;
    this.sendButton.setAttribute("aria-label", label);
    this.sendButton.title = label;
    this.form.toggleAttribute("data-ready", this.#hasContent);
  }

  // Let the user choose another model.
  openPicker() {
    this.picker.focus();
    this.picker.showPicker?.();
  }

  setText(text) {
    this.field.value = text;
    this.#onInput();
    this.field.focus();
  }

  quote(text) {
    const before = this.field.value.trimEnd();
    this.setText(`${before && `${before}\n\n`}${text.trimEnd().replace(/^/gm, "> ")}\n\n`);
    this.field.setSelectionRange(this.field.value.length, this.field.value.length);
  }

  // Take a message back from the queue and put it before the text in the field.
  restoreMessage({ content, files }) {
    this.setText([content, this.field.value].filter((text) => text.trim()).join("\n\n"));
    this.files.restoreFiles(files);
  }

  #onKeyDown(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.#send();
  }

  async #send() {
    const content = this.field.value;
    if (!this.#hasContent || this.sendButton.dataset.state === "sending") return;
    this.sendButton.dataset.state = "sending";
    try {
      if (!this.chat.session) await this.#createSession();
      await this.#sendOrQueue(content);
      this.#lastAttempt = null;
      if (this.field.value === content) this.field.value = "";
      this.#onInput();
    } catch (problem) {
      showSnackbar(getText("notSent", { why: problem.message }));
    } finally {
      this.sendButton.dataset.state = "idle";
    }
  }

  // Move the draft to the chat that is stored now.
  async #createSession() {
    await this.chat.createSession();
    saveItem("draft", "", null);
    this.#saveDraft();
  }

  async #sendOrQueue(content) {
    const ids = await this.files.uploadAll(this.chat.session);
    const key = this.#getIdempotencyKey(JSON.stringify([content, ids]));
    const queue = (fields) =>
      this.queue.add({ content, key, files: this.files.takeFiles(), ...fields });
    if (this.generating || this.queue.isActive) return queue();
    try {
      await this.chat.sendMessage(content, key, ids);
      this.files.takeFiles();
    } catch (problem) {
      if (!canRetry(problem)) throw problem;
      queue({ unsure: mayHaveArrived(problem) });
    }
  }

  // Save the key before it is used, so that a reload sends the same message under the same key.
  #getIdempotencyKey(body) {
    if (this.#lastAttempt?.body !== body) this.#lastAttempt = { key: createKey(), body };
    this.#saveDraft();
    return this.#lastAttempt.key;
  }

  #onInput() {
    this.#refreshView();
    this.#saveDraft();
  }

  #refreshView() {
    this.updateButtons();
    this.chat.meter.showDraft(this.field.value);
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  #saveDraft() {
    const text = this.field.value;
    saveItem("draft", this.chat.session, text ? { text, attempt: this.#lastAttempt } : null);
  }

  // Restore a saved draft.
  #loadDraft(draft) {
    this.field.value = draft?.text ?? "";
    this.#lastAttempt = draft?.attempt ?? null;
  }
}
