// Say once that messages are left out, and not once a turn: how often, why, what, and what now.

import { callApi } from "./api.js";
import { isSummarizedFirst } from "./long_chat_note.js";
import { getText } from "./texts.js";

const FAILED = ["fell_back", "failed"];

export class TrimNotices {
  #newestLoad = 0;

  constructor(chat) {
    this.chat = chat;
    chat.addEventListener("pagechange", () => this.#collapse());
    chat.addEventListener(
      "click",
      ({ target }) =>
        target.closest("[data-summarize-again]") && this.chat.meter.requestCompaction(),
    );
  }

  // Show only the newest line, with what is true of the next request.
  async refresh() {
    const count = this.#collapse();
    const load = ++this.#newestLoad;
    const facts = count && this.chat.session ? await this.#loadFacts() : null;
    if (load !== this.#newestLoad) return;
    this.chat.timeline.markLeftOut(facts?.leftOut ?? []);
    // One voice: what is summarized before the next answer is not left out of it.
    const isLeftOut = facts?.leftOut.length && !isSummarizedFirst(this.chat.meter.usage);
    this.chat.meter.showSent(isLeftOut ? facts.tokens : null);
    this.chat.querySelector(".notice-details")?.remove();
    const line = [...this.chat.timeline.list.querySelectorAll(".notice")].at(-1);
    if (!facts?.leftOut.length || !line) return;
    const [details] = this.chat.timeline.cloneTemplate("notice-details-template");
    details.querySelector("span").textContent = [
      isLeftOut ? getText("trimmedNow", { count: facts.leftOut.length }) : "",
      count > 1 ? getText("trimmedAnswers", { count }) : "",
      facts.why ? getText("trimmedWhy", { why: facts.why }) : "",
    ].join(" ");
    line.after(details);
  }

  // Return how many lines there are.
  #collapse() {
    const lines = [...this.chat.timeline.list.querySelectorAll(".notice")];
    for (const line of lines) line.hidden = line !== lines.at(-1);
    return lines.length;
  }

  async #loadFacts() {
    const path = `sessions/${this.chat.session}`;
    const [preview, runs] = await Promise.all([
      callApi("GET", `${path}/context/preview`),
      callApi("GET", `${path}/compactions?limit=1`),
    ]);
    const [newest] = runs.results;
    return {
      leftOut: preview.left_out,
      tokens: preview.tokens,
      why: FAILED.includes(newest?.status) ? newest.reason : "",
    };
  }
}
