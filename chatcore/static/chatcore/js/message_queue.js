// Queue messages while an answer is written or the server cannot be reached, and send them one by
// one.

import { callApi } from "./api.js";
import { loadItem, onItemChangedElsewhere, saveItem } from "./browser_storage.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const RETRY_MS = 5000;

// Return whether sending again can succeed: the server is away, nobody is signed in, or a turn is
// running.
export const canRetry = ({ status, type }) =>
  status === 0 || status === 401 || type === "turn_running" || type === "turn_waiting";

// Return whether the server took nothing on because it has too much to do, or nowhere to store it.
// A message of the queue waits for that to pass.
const isOverloaded = ({ type }) =>
  ["overloaded", "too_many_turns", "database_unavailable", "storage_full"].includes(type);

export const mayHaveArrived = ({ status }) => status === 0;

// Every tab of the chat shows the same queue. Two tabs that send at once use the same key, so the
// message arrives once.
export class MessageQueue {
  // {content, key, files, unsure}; unsure: it may have arrived, because no response came.
  #waiting = [];
  #holdReason = ""; // the key of the text that says why the queue waits for the user
  #sending = false;
  #timer;

  constructor(chat, composer) {
    this.chat = chat;
    this.composer = composer;
    this.list = chat.querySelector(".queued");
    this.note = chat.querySelector(".queued-note");
    this.list.addEventListener("click", ({ target }) => this.#onClick(target.closest("button")));
    onItemChangedElsewhere("queue", chat, (stored) => this.#render(stored));
    this.#render(loadItem("queue", chat.session));
  }

  // True when queued messages will be sent without the user; a new message goes behind them.
  get isActive() {
    return this.#waiting.length > 0 && !this.#holdReason;
  }

  add(message) {
    this.#update((waiting) => [...waiting, message]);
    this.#scheduleRetry();
  }

  // Send the next message. The chat may be free, or it may already answer a message that had no
  // response.
  resume() {
    this.#send();
  }

  hold(reason) {
    this.#update((waiting) => waiting, reason);
  }

  async #send() {
    clearTimeout(this.#timer);
    const [message] = this.#waiting;
    if (!this.chat.session && !this.composer.model) return; // it waits for a language model
    if (!message || this.#holdReason || this.#sending || (this.chat.isBusy && !message.unsure))
      return;
    this.#sending = true;
    try {
      await this.#sendMessage(message);
      this.#remove(message);
    } catch (problem) {
      if (canRetry(problem) || isOverloaded(problem))
        this.#update((waiting) =>
          waiting.map((other) =>
            other.key === message.key ? { ...other, unsure: mayHaveArrived(problem) } : other,
          ),
        );
      else this.#onRefused(problem);
    } finally {
      this.#sending = false;
    }
    this.#scheduleRetry();
  }

  #sendMessage({ content, key, files }) {
    const ids = files.map((file) => file.id);
    return this.chat.session
      ? this.chat.sendMessage(content, key, ids)
      : this.chat.startChat(content, async () => ({ ids, key }));
  }

  // What waits in a new chat waits in the stored chat from now on.
  moveTo(session) {
    const stored = loadItem("queue", "");
    saveItem("queue", "", null);
    if (stored) saveItem("queue", session, stored);
  }

  // Events of the chat send the next message. The timer is for the case that no event comes.
  #scheduleRetry() {
    clearTimeout(this.#timer);
    if (this.isActive && !(this.chat.isBusy && !this.#waiting[0].unsure))
      this.#timer = setTimeout(() => this.#send(), RETRY_MS);
  }

  #onRefused(problem) {
    this.hold("queueRefused");
    showSnackbar(getText("notSent", { why: problem.message }));
  }

  #remove({ key }) {
    this.#update((waiting) => waiting.filter((other) => other.key !== key));
  }

  #onClick(button) {
    const message = this.#waiting[[...this.list.children].indexOf(button?.closest("li"))];
    if (!message || this.#sending) return;
    if (button.dataset.queue === "send") {
      this.hold("");
      return this.#send();
    }
    this.#remove(message);
    if (button.dataset.queue === "edit") this.composer.restoreMessage(message);
    else
      for (const file of message.files)
        callApi("DELETE", `attachments/${file.id}`).catch((problem) => console.warn(problem));
    this.composer.field.focus();
  }

  // Begin with the stored queue, because another tab may have changed it.
  #update(change, held = this.#holdReason) {
    const storedQueue = loadItem("queue", this.chat.session);
    const waiting = change(
      storedQueue === undefined ? this.#waiting : (storedQueue?.waiting ?? []),
    );
    const stored = waiting.length ? { waiting, held } : null;
    saveItem("queue", this.chat.session, stored);
    this.#render(stored);
  }

  #render(stored) {
    this.#waiting = stored?.waiting ?? [];
    this.#holdReason = stored?.held ?? "";
    this.list.replaceChildren(...this.#waiting.map((message) => this.#createItem(message)));
    this.list.toggleAttribute("data-held", Boolean(this.#holdReason));
    this.list.hidden = !this.#waiting.length;
    const waitsForModel = this.isActive && !this.chat.session && !this.composer.model;
    const reason = waitsForModel ? "queueNeedsModel" : this.#holdReason;
    this.note.textContent = reason ? getText(reason) : "";
  }

  #createItem({ content, files }) {
    const [item] = this.chat.timeline.cloneTemplate("queued-template");
    item.querySelector(".queued-words").textContent =
      content || files.map((file) => file.name).join(", ");
    return item;
  }
}
