// The form for writing a message: send, stop, choose the model. A draft is kept until it has
// arrived.

import { Attachments } from "./attachments.js";
import { loadItem, onItemChangedElsewhere, saveItem } from "./browser_storage.js";
import { isSendKey } from "./keyboard.js";
import { LongText } from "./long_text.js";
import "./model_picker.js";
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
  #inFlight = ""; // the text that is being sent

  constructor(chat) {
    this.chat = chat;
    this.form = chat.querySelector(".composer");
    this.field = this.form.querySelector("textarea");
    this.sendButton = this.form.querySelector(".send:not(.stop)");
    this.stopButton = this.form.querySelector(".stop");
    this.picker = this.form.querySelector("model-picker");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.field.addEventListener("keydown", (event) => this.#onKeyDown(event));
    this.field.addEventListener("input", () => this.#onInput());
    this.stopButton.addEventListener("click", () => chat.cancelTurn());
    this.picker.addEventListener("choose", () => chat.changeModel(this.picker.value));
    // The user may have typed before this script ran, and no event tells of it.
    if (this.field.value) this.#saveDraft();
    else this.#loadDraft(loadItem("draft", chat.session));
    this.files = new Attachments(chat, this);
    this.longText = new LongText(this);
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

  // As the page shows it, without its provider.
  get modelName() {
    return this.picker.shownName;
  }

  get contextWindow() {
    return this.picker.contextWindow;
  }

  set model(name) {
    this.picker.value = name;
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
    this.picker.open();
  }

  setText(text) {
    this.field.value = text;
    this.#onInput();
    this.field.focus();
  }

  // Send a text, and keep what is in the field.
  ask(text) {
    const draft = this.field.value;
    this.setText(text);
    this.form.requestSubmit();
    if (draft) this.setText([this.field.value, draft].filter(Boolean).join("\n\n"));
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
    if (!isSendKey(event)) return;
    event.preventDefault();
    this.#send();
  }

  // The words leave the field at once, and come back when they are not taken. Until then they are
  // still part of the draft, so that a reload loses none.
  async #send() {
    const content = this.field.value;
    if (!this.#hasContent || this.sendButton.dataset.state === "sending") return;
    this.sendButton.dataset.state = "sending";
    this.#inFlight = content;
    this.field.value = "";
    this.#refreshView();
    try {
      await this.#sendOrQueue(content);
      this.#inFlight = "";
      this.#lastAttempt = null;
      this.#onInput();
    } catch (problem) {
      this.chat.timeline.removeEcho();
      this.#inFlight = "";
      this.setText([content, this.field.value].filter((text) => text.trim()).join("\n\n"));
      showSnackbar(getText("notSent", { why: problem.message }));
    } finally {
      this.sendButton.dataset.state = "idle";
    }
  }

  async #sendOrQueue(content) {
    if (!this.chat.session && !this.model) return this.#waitForModel(content);
    let message = null; // {ids, key} when it is ready to be sent
    const prepare = async (session) => {
      const ids = await this.files.uploadAll(session);
      message = { ids, key: this.#getIdempotencyKey(JSON.stringify([content, ids])) };
      return message;
    };
    const queue = (fields) =>
      this.queue.add({ content, key: message.key, files: this.files.takeFiles(), ...fields });
    if (this.generating || this.queue.isActive) {
      await prepare(this.chat.session);
      return queue();
    }
    this.chat.timeline.showEcho(content, this.files.names);
    try {
      await this.#sendNow(content, prepare);
      this.files.takeFiles();
    } catch (problem) {
      if (!this.chat.session) this.files.forgetUploads();
      if (!canRetry(problem) || !this.chat.session || !message) throw problem;
      this.chat.timeline.removeEcho();
      queue({ unsure: mayHaveArrived(problem) });
    }
  }

  async #sendNow(content, prepare) {
    const { session } = this.chat;
    if (!session) return this.chat.startChat(content, prepare);
    const { ids, key } = await prepare(session);
    await this.chat.sendMessage(content, key, ids);
  }

  // Keep the message until there is a language model: then the page is loaded again and sends it.
  #waitForModel(content) {
    if (this.files.hasFiles) throw new Error(getText("filesNeedModel"));
    this.queue.add({ content, key: createKey(), files: [] });
  }

  // The new chat is stored now, and what belongs to it too.
  moveDraft(session) {
    for (const kind of ["draft", "files"]) saveItem(kind, "", null);
    this.queue.moveTo(session);
    this.#saveDraft();
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
    this.longText.refresh();
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  #saveDraft() {
    const text = [this.#inFlight, this.field.value].filter(Boolean).join("\n\n");
    saveItem("draft", this.chat.session, text ? { text, attempt: this.#lastAttempt } : null);
  }

  // Restore a saved draft.
  #loadDraft(draft) {
    this.field.value = draft?.text ?? "";
    this.#lastAttempt = draft?.attempt ?? null;
  }
}
