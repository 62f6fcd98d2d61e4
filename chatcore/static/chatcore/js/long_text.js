// Send a long text as a file: one that was pasted becomes one at once, one that no message or model
// takes is offered to become one.

import { showSnackbarWithAction } from "./snackbar.js";
import { getText } from "./texts.js";
import { estimateTokens } from "./token_estimate.js";

const MAX_MESSAGE_BYTES = 256 * 1024;
const MAX_PASTED_LENGTH = 4000; // a page and a half; more would hide the question about it
const UNDO_MS = 12000;

export class LongText {
  #undo = null; // puts the text of the newest file back, until something is typed

  constructor(composer) {
    this.composer = composer;
    this.field = composer.field;
    this.offer = composer.form.querySelector(".as-file");
    this.offer.querySelector("button").addEventListener("click", () => this.#moveText());
    this.field.addEventListener("input", () => (this.#undo = null));
    this.field.addEventListener("keydown", (event) => this.#onKeyDown(event));
  }

  // Take a paste that is too long for a message. Return whether it was taken.
  takePaste(event) {
    const text = event.clipboardData.getData("text/plain");
    if (text.length <= MAX_PASTED_LENGTH && !this.#findReason(this.field.value + text))
      return false;
    event.preventDefault();
    this.#undo = this.#attach(text, this.field.selectionStart, this.field.selectionEnd);
    return true;
  }

  // Offer the file where the text in the field is too long. The words come last and only once,
  // because a screen reader announces them when they change.
  refresh() {
    const reason = this.#findReason(this.field.value);
    this.offer.hidden = !reason;
    const words = this.offer.querySelector("p");
    const text = reason ? getText(reason, { model: this.composer.modelName }) : "";
    if (words.textContent !== text) words.textContent = text;
  }

  #findReason(text) {
    // A code unit takes three bytes at most, so most texts need not be encoded.
    if (text.length * 3 > MAX_MESSAGE_BYTES && new Blob([text]).size > MAX_MESSAGE_BYTES)
      return "textOverMessage";
    const { contextWindow } = this.composer;
    return contextWindow && estimateTokens(text) > contextWindow ? "textOverWindow" : "";
  }

  #moveText() {
    const text = this.field.value;
    const undo = this.#attach(text, 0, 0);
    if (undo) {
      this.composer.setText("");
      this.#undo = undo; // behind the event of the change, which forgets it
    }
    this.field.focus();
  }

  // Attach a text. Return the way back into this part of the field, or null if it was refused.
  #attach(text, start, end) {
    const takeBack = this.composer.files.addText(text);
    if (!takeBack) return null;
    const undo = () => {
      this.#undo = null;
      if (!takeBack()) return;
      this.field.setRangeText(text, start, end, "end");
      this.field.dispatchEvent(new Event("input", { bubbles: true }));
    };
    showSnackbarWithAction(getText("textAttached"), {
      label: getText("undo"),
      action: undo,
      onDismiss: () => {},
      durationMs: UNDO_MS,
    });
    return undo;
  }

  #onKeyDown(event) {
    if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || !this.#undo)
      return;
    event.preventDefault();
    this.#undo();
  }
}
