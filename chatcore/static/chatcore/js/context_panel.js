// Show what the model sees: the next request as it would be sent, word for word.

import { callApi } from "./api.js";
import { formatCount, formatCountChange, formatDuration } from "./formats.js";
import { Ledger } from "./ledger.js";
import { RequestView } from "./request_view.js";
import { showSnackbar } from "./snackbar.js";
import { getText, textKey } from "./texts.js";

export { SentRequest } from "./sent_request.js"; // it comes with what it shares

const MAX_RUNS = 50;

export class ContextPanel {
  constructor(chat) {
    this.chat = chat;
    this.dialog = chat.querySelector("#context-panel");
    this.dialog.addEventListener(
      "click",
      (event) => event.target === this.dialog && this.dialog.close(),
    ); // a click outside of the dialog
    this.view = new RequestView(this.dialog, chat.timeline);
  }

  #find(selector) {
    return this.dialog.querySelector(selector);
  }

  async open() {
    if (!this.chat.session) return showSnackbar(getText("nothingYet"));
    this.chat.querySelector("#context").hidePopover();
    if (!this.dialog.open) this.dialog.showModal();
    await this.refresh();
  }

  // Update the panel while it is open.
  async refresh() {
    if (!this.dialog.open) return;
    try {
      const [request, context, runs] = await Promise.all([
        callApi("GET", `sessions/${this.chat.session}/context/preview`),
        callApi("GET", `sessions/${this.chat.session}/context`),
        callApi("GET", `sessions/${this.chat.session}/compactions?limit=${MAX_RUNS}`),
      ]);
      this.#render(request, context);
      this.#renderRuns(runs.results);
      if (!this.#find(".ledger")) return;
      this.ledger ??= new Ledger(this.chat, this.dialog);
      await this.ledger.refresh(context.policy);
    } catch (problem) {
      this.#find(".panel-facts").textContent = getText("failed", { why: problem.message });
    }
  }

  #render(request, context) {
    this.view.render(request);
    this.#find(".panel-facts").textContent = getText("panelFacts", {
      model: request.model || "–",
      messages: request.messages.length,
      tokens: formatCount(request.tokens ?? context.estimated_input_tokens),
      version: request.context_version,
      policy: context.policy,
    });
    this.chat.timeline.markLeftOut(request.left_out);
  }

  #renderRuns(runs) {
    this.#find(".sent-runs").hidden = !runs.length;
    this.#find(".runs").replaceChildren(
      ...runs.map((run) => {
        const item = document.createElement("li");
        const figures = formatCountChange(run.tokens_before, run.tokens_after);
        const when = new Date(run.created_at).toLocaleString(document.documentElement.lang, {
          dateStyle: "medium",
          timeStyle: "short",
        });
        const texts = [
          when,
          getText(textKey("run", run.status)),
          figures,
          run.duration_ms === null ? "" : formatDuration(run.duration_ms),
          run.reason,
        ];
        for (const text of texts.filter(Boolean)) {
          const part = document.createElement("span");
          part.textContent = text;
          item.append(part);
        }
        item.dataset.outcome = run.status;
        return item;
      }),
    );
  }
}
