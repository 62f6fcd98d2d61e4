// Show what the model sees: the next request as it would be sent, word for word.

import { callApi } from "./api.js";
import { formatCount, formatCountChange, formatDuration, formatNumber } from "./formats.js";
import { Ledger } from "./ledger.js";
import { showSnackbar } from "./snackbar.js";
import { getRoleName, getText, textKey } from "./texts.js";
import { estimateTokens } from "./token_estimate.js";

const MAX_RUNS = 50;
const FEEDBACK_MS = 3000;

export class ContextPanel {
  constructor(chat) {
    this.chat = chat;
    this.dialog = chat.querySelector("#context-panel");
    this.ledger = new Ledger(chat, this.dialog);
    this.dialog.addEventListener(
      "click",
      (event) => event.target === this.dialog && this.dialog.close(),
    ); // a click outside of the dialog
    this.#find(".panel-copy").addEventListener("click", () => this.#copyRequest());
    chat.addEventListener(
      "click",
      ({ target }) => target.closest("[data-context-panel]") && this.open(),
    );
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
      await this.ledger.refresh(context.policy);
    } catch (problem) {
      this.#find(".panel-facts").textContent = getText("failed", { why: problem.message });
    }
  }

  #render(request, context) {
    this.request = request;
    for (const name of ["system", "preface"]) this.#renderText(name, request[name]);
    this.#find(".sent-messages").replaceChildren(
      ...request.messages.map((message) => this.#createMessage(message)),
    );
    const tools = request.tools.length ? JSON.stringify(request.tools, null, 2) : "";
    this.#find(".sent-tools").hidden = !tools;
    this.#find(".sent-tools pre").textContent = tools;
    this.#find(".sent-tools .sent-size").textContent = formatEstimate(tools);
    this.#find(".panel-copy").disabled = false;
    this.#find(".panel-facts").textContent = getText("panelFacts", {
      model: request.model || "–",
      messages: request.messages.length,
      tokens: formatCount(request.tokens ?? context.estimated_input_tokens),
      version: request.context_version,
    });
    const leftOut = this.#find(".panel-left-out");
    leftOut.hidden = !request.left_out.length;
    leftOut.textContent = getText("leftOut", { count: request.left_out.length });
    this.chat.timeline.markLeftOut(request.left_out);
  }

  #renderText(name, text) {
    const section = this.#find(`[data-sent="${name}"]`);
    section.hidden = !text;
    section.querySelector("pre").textContent = text;
    section.querySelector(".sent-size").textContent = formatEstimate(text);
  }

  #createMessage(message) {
    const [item] = this.chat.timeline.cloneTemplate("sent-template");
    item.dataset.role = message.aside ? "aside" : message.role;
    item.querySelector(".sent-role").textContent = message.aside
      ? getText("roleAside")
      : message.tool_name || getRoleName(message.role);
    const link = item.querySelector(".sent-seq");
    link.hidden = !message.seq;
    link.textContent = `#${message.seq}`;
    link.dataset.goesTo = message.seq;
    item.querySelector(".sent-size").textContent = formatEstimate(formatMessage(message));
    item.querySelector("pre").textContent = formatMessage(message);
    return item;
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

  async #copyRequest() {
    await navigator.clipboard.writeText(JSON.stringify(this.request, null, 2));
    const label = this.#find(".panel-copy span");
    const text = label.textContent;
    label.textContent = getText("copied");
    setTimeout(() => (label.textContent = text), FEEDBACK_MS);
  }
}

// Return the text of a message with its tool calls and a line for each image.
function formatMessage({ content, tool_calls: calls, images }) {
  const parts = [
    content,
    ...calls.map((call) => `→ ${call.name} ${call.arguments}`),
    ...images.map((image) => `[${image.media_type}, ${formatNumber(image.size)} B]`),
  ];
  return parts.filter(Boolean).join("\n");
}

function formatEstimate(text) {
  return text ? getText("about", { tokens: formatCount(estimateTokens(text)) }) : "";
}
