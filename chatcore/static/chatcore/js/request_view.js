// Draw a request part by part into a dialog that has `_sent_parts.html`, and copy it as JSON.

import { writeClipboard } from "./clipboard.js";
import { formatCount, formatNumber } from "./formats.js";
import { getRoleName, getText } from "./texts.js";
import { estimateTokens } from "./token_estimate.js";

const FEEDBACK_MS = 3000;

export class RequestView {
  constructor(dialog, timeline) {
    this.dialog = dialog;
    this.timeline = timeline;
    this.copyButton = this.#find(".panel-copy");
    this.copyButton.addEventListener("click", () => this.#copyRequest());
  }

  #find(selector) {
    return this.dialog.querySelector(selector);
  }

  render(request) {
    this.request = request;
    for (const name of ["system", "preface"]) this.#renderText(name, request[name]);
    this.#find(".sent-messages").replaceChildren(
      ...request.messages.map((message) => this.#createMessage(message)),
    );
    const tools = request.tools.length ? JSON.stringify(request.tools, null, 2) : "";
    this.#find(".sent-tools").hidden = !tools;
    this.#find(".sent-tools pre").textContent = tools;
    this.#find(".sent-tools .sent-size").textContent = formatEstimate(tools);
    this.copyButton.disabled = false;
    const leftOut = this.#find(".panel-left-out");
    leftOut.hidden = !request.left_out.length;
    leftOut.textContent = getText("leftOut", { count: request.left_out.length });
  }

  // Draw nothing, while another request is fetched or where none is known.
  clear() {
    this.render({ system: "", preface: "", messages: [], tools: [], left_out: [] });
    this.copyButton.disabled = true;
  }

  #renderText(name, text) {
    const section = this.#find(`[data-sent="${name}"]`);
    section.hidden = !text;
    section.querySelector("pre").textContent = text;
    section.querySelector(".sent-size").textContent = formatEstimate(text);
  }

  #createMessage(message) {
    const [item] = this.timeline.cloneTemplate("sent-template");
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

  async #copyRequest() {
    if (!(await writeClipboard(this.copyButton, JSON.stringify(this.request, null, 2)))) return;
    const label = this.copyButton.querySelector("span");
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
