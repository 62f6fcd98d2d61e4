// Show the request that an answer came from, word for word.

import { callApi } from "./api.js";
import { formatCount } from "./formats.js";
import { RequestView } from "./request_view.js";
import { getText } from "./texts.js";

export class SentRequest {
  #newestLoad = 0; // only the answer that was asked for last is shown

  constructor(chat) {
    this.dialog = chat.querySelector("#sent-request");
    this.view = new RequestView(this.dialog, chat.timeline);
    this.dialog.addEventListener(
      "click",
      (event) => event.target === this.dialog && this.dialog.close(),
    ); // a click outside of the dialog
  }

  #find(selector) {
    return this.dialog.querySelector(selector);
  }

  async open(article) {
    const load = ++this.#newestLoad;
    this.view.clear();
    this.#find(".panel-removed").hidden = true;
    this.#find(".panel-facts").textContent = "…";
    if (!this.dialog.open) this.dialog.showModal();
    try {
      const request = await callApi("GET", `messages/${article.dataset.message}/request`);
      if (load === this.#newestLoad) this.#render(request);
    } catch (problem) {
      this.#find(".panel-facts").textContent =
        problem.status === 404 ? getText("requestUnknown") : problem.message;
    }
  }

  #render(request) {
    this.view.render(request);
    this.#find(".panel-facts").textContent = getText("requestFacts", {
      model: request.model,
      count: request.messages.length,
      tokens: request.tokens === null ? "–" : formatCount(request.tokens),
    });
    const removed = this.#find(".panel-removed");
    removed.hidden = !request.missing_parts;
    removed.textContent = getText("requestRemoved", { count: request.missing_parts });
  }
}
