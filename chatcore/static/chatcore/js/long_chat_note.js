// Say what the next message of a chat leads to that is longer than its model can read at once, as
// one that was imported, or whose model has a smaller window than it had.

import { formatNumber } from "./formats.js";
import { previewRun } from "./run_preview.js";
import { getText } from "./texts.js";

export class LongChatNote {
  #question = 0; // an answer to an earlier one comes too late

  constructor(chat) {
    this.chat = chat;
    this.element = chat.querySelector(".long-chat");
    this.element.querySelector("button").addEventListener("click", () => {
      this.hide();
      chat.meter.requestCompaction();
    });
  }

  // Look at what the meter shows. The preview is asked for only where it can have something to say.
  async refresh() {
    const question = ++this.#question;
    const { usage } = this.chat.meter;
    const begins = usage && !usage.compacting && !this.chat.isBusy ? describeSize(usage) : "";
    const run = begins && (await previewRun(this.chat.session));
    if (question !== this.#question) return;
    if (!run) return this.hide();
    const values = {
      model: this.chat.composer.modelName,
      used: formatNumber(usage.estimated_input_tokens),
      window: formatNumber(usage.context_window),
    };
    const follows =
      usage.automatic === "off"
        ? getText("notByItself")
        : getText("summarizedBefore", { count: run.messages_compacted });
    this.#show(`${getText(begins, values)} ${follows}`);
  }

  // The words come last and only once, because a screen reader announces them when they change.
  #show(text) {
    this.element.hidden = false;
    const words = this.element.querySelector("p");
    if (words.textContent !== text) words.textContent = text;
  }

  hide() {
    this.#question++;
    this.element.hidden = true;
    this.element.querySelector("p").textContent = "";
  }
}

// Return the key of the first sentence; empty where the next message needs no summary, or where a
// failure holds it back, of which another line tells.
function describeSize({ estimated_input_tokens: used, context_window, next_request, automatic }) {
  const isLonger = context_window && used > context_window;
  if (automatic === "off") return isLonger ? "longerThanWindow" : "";
  if (next_request !== "summarized") return "";
  return isLonger ? "longerThanWindow" : "nearlyFillsWindow";
}
