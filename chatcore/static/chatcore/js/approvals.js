// Ask the person before a tool of an MCP server is called, at the end of the chat.

import { callApi } from "./api.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

export class Approvals {
  constructor(chat) {
    this.chat = chat;
    this.list = chat.querySelector(".approvals");
    this.template = document.getElementById("approval-template");
    this.list.addEventListener("click", (event) => {
      const button = event.target.closest("[data-decision]");
      if (button) this.#decide(button);
    });
  }

  get isAsking() {
    return this.list.childElementCount > 0;
  }

  // Show the calls that wait now. What is shown already stays as it is.
  ask(requests) {
    const ids = new Set(requests.map(({ id }) => id));
    for (const question of [...this.list.children])
      if (!ids.has(question.dataset.call)) this.remove(question.dataset.call);
    for (const request of requests) if (!this.#find(request.id)) this.#add(request);
  }

  remove(id) {
    this.#find(id)?.remove();
    this.#mark(id, false);
  }

  clear() {
    for (const { dataset } of this.list.children) this.#mark(dataset.call, false);
    this.list.replaceChildren();
  }

  // The card of the call says that it waits, and not that it runs. Ids of calls may come again, so
  // the newest one counts.
  #mark(id, isAsked) {
    const cards = this.chat.querySelectorAll(`.call[data-call="${CSS.escape(id)}"]`);
    [...cards].at(-1)?.toggleAttribute("data-asked", isAsked);
  }

  #find(id) {
    return [...this.list.children].find((question) => question.dataset.call === id);
  }

  #add({ id, tool, server, arguments: text }) {
    const question = this.template.content.firstElementChild.cloneNode(true);
    question.dataset.call = id;
    const title = getText("approval", { tool, server });
    question.querySelector(".approval-title").textContent = title;
    question.setAttribute("aria-label", title);
    question.querySelector(".call-arguments").textContent = formatJson(text);
    this.list.append(question);
    this.#mark(id, true);
    this.chat.timeline.followEnd();
  }

  // The event of the decision takes the question away, on every page that shows it.
  async #decide(button) {
    const question = button.closest(".approval");
    const buttons = question.querySelectorAll("button");
    for (const each of buttons) each.disabled = true;
    const approval = { tool_call_id: question.dataset.call, decision: button.dataset.decision };
    try {
      await callApi(
        "POST",
        `sessions/${this.chat.session}/approvals`,
        { approvals: [approval] },
        { Prefer: "respond-async" },
      );
    } catch (problem) {
      for (const each of buttons) each.disabled = false;
      showSnackbar(getText("failed", { why: problem.message }));
    }
  }
}

function formatJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
