// The panel of what the model sees now: the next request as it would be sent, word for word.

import { api } from "./api.js";
import { roleName } from "./card.js";
import { estimate } from "./estimate.js";
import { camel, say, shortCount, shortTime } from "./words.js";
import { snackbar } from "./snackbar.js";

const SHOWN_RUNS = 50;
const COPIED_MS = 3000;

export class Panel {
  constructor(chat) {
    this.chat = chat;
    this.dialog = chat.querySelector("#context-panel");
    this.dialog.addEventListener(
      "click",
      (event) => event.target === this.dialog && this.dialog.close(),
    ); // beside it
    this.#find(".panel-copy").addEventListener("click", () => this.#copy());
    chat.addEventListener(
      "click",
      ({ target }) => target.closest("[data-context-panel]") && this.open(),
    );
  }

  #find(selector) {
    return this.dialog.querySelector(selector);
  }

  async open() {
    if (!this.chat.session) return snackbar(say("nothingYet"));
    this.chat.querySelector("#context").hidePopover();
    if (!this.dialog.open) this.dialog.showModal();
    await this.refresh();
  }

  // What is open is kept true.
  async refresh() {
    if (!this.dialog.open) return;
    try {
      const [sent, context, runs] = await Promise.all([
        api("GET", `sessions/${this.chat.session}/context/preview`),
        api("GET", `sessions/${this.chat.session}/context`),
        api("GET", `sessions/${this.chat.session}/compactions?limit=${SHOWN_RUNS}`),
      ]);
      this.#show(sent, context);
      this.#runs(runs.results);
    } catch (problem) {
      this.#find(".panel-facts").textContent = say("failed", { why: problem.message });
    }
  }

  #show(sent, context) {
    this.sent = sent;
    for (const name of ["system", "preface"]) this.#text(name, sent[name]);
    this.#find(".sent-messages").replaceChildren(
      ...sent.messages.map((message) => this.#message(message)),
    );
    const tools = sent.tools.length ? JSON.stringify(sent.tools, null, 2) : "";
    this.#find(".sent-tools").hidden = !tools;
    this.#find(".sent-tools pre").textContent = tools;
    this.#find(".sent-tools .sent-size").textContent = about(tools);
    this.#find(".panel-copy").disabled = false;
    this.#find(".panel-facts").textContent = say("panelFacts", {
      model: sent.model || "–",
      messages: sent.messages.length,
      tokens: shortCount(context.estimated_input_tokens),
      version: sent.context_version,
    });
  }

  #text(name, text) {
    const section = this.#find(`[data-sent="${name}"]`);
    section.hidden = !text;
    section.querySelector("pre").textContent = text;
    section.querySelector(".sent-size").textContent = about(text);
  }

  #message(message) {
    const [item] = this.chat.timeline.stamp("sent-piece");
    item.dataset.role = message.aside ? "aside" : message.role;
    item.querySelector(".sent-role").textContent = message.aside
      ? say("roleAside")
      : message.tool_name || roleName(message.role);
    const link = item.querySelector(".sent-seq");
    link.hidden = !message.seq;
    link.textContent = `#${message.seq}`;
    link.dataset.goesTo = message.seq;
    item.querySelector(".sent-size").textContent = about(said(message));
    item.querySelector("pre").textContent = said(message);
    return item;
  }

  #runs(runs) {
    this.#find(".sent-runs").hidden = !runs.length;
    this.#find(".runs").replaceChildren(
      ...runs.map((run) => {
        const item = document.createElement("li");
        const figures =
          run.tokens_before === null
            ? ""
            : `${shortCount(run.tokens_before)} → ${shortCount(run.tokens_after)}`;
        const when = new Date(run.created_at).toLocaleString(document.documentElement.lang, {
          dateStyle: "medium",
          timeStyle: "short",
        });
        const texts = [
          when,
          say(camel("run", run.status)),
          figures,
          run.duration_ms === null ? "" : shortTime(run.duration_ms),
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

  async #copy() {
    await navigator.clipboard.writeText(JSON.stringify(this.sent, null, 2));
    const label = this.#find(".panel-copy span");
    const text = label.textContent;
    label.textContent = say("copied");
    setTimeout(() => (label.textContent = text), COPIED_MS);
  }
}

// All that a message says: its words, its calls, and that there are images.
function said({ content, tool_calls: calls, images }) {
  const parts = [
    content,
    ...calls.map((call) => `→ ${call.name} ${call.arguments}`),
    ...images.map((image) => `[${image.media_type}, ${image.size.toLocaleString()} B]`),
  ];
  return parts.filter(Boolean).join("\n");
}

function about(text) {
  return text ? say("about", { tokens: shortCount(estimate(text)) }) : "";
}
