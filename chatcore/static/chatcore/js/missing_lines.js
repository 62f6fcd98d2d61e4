// Say on the card what its summary leaves out, and let people put it in or pin its message.

import { callApi } from "./api.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const MAX_LOADS = 20; // each reads a thousand messages

export class MissingLines {
  constructor(card) {
    this.card = card;
    this.element = card.element.querySelector(".card-missing");
    this.element.addEventListener("click", ({ target }) => this.#handleClick(target));
    this.refresh().catch((problem) => console.warn(problem));
  }

  async refresh() {
    const path = `sessions/${this.card.session.id}/context/missing`;
    for (let load = 0; load < MAX_LOADS && this.answer?.is_complete !== true; load++)
      this.answer = await callApi("GET", path);
    this.#render();
  }

  #render() {
    const { count, lines } = this.answer;
    this.element.hidden = !count;
    this.card.element.querySelector(".card-gaps").textContent = count
      ? getText("missingCount", { count })
      : "";
    this.element.querySelector("ul").replaceChildren(...lines.map((line) => this.#fillItem(line)));
    const rest = this.element.querySelector(".missing-rest");
    rest.hidden = count <= lines.length;
    rest.textContent = getText("missingRest", { count: count - lines.length });
  }

  #fillItem(line) {
    const [item] = this.card.chat.timeline.cloneTemplate("missing-line-template");
    item.dataset.line = line.id;
    item.querySelector(".missing-text").textContent = line.text;
    const link = item.querySelector(".sent-seq");
    link.textContent = `#${line.seq}`;
    link.dataset.goesTo = line.seq;
    item.querySelector("[data-missing=pin]").textContent = getText("pinMessage", { seq: line.seq });
    return item;
  }

  #handleClick(target) {
    const button = target.closest("[data-missing]");
    if (!button) return;
    const id = Number(button.closest("[data-line]").dataset.line);
    const line = this.answer.lines.find((each) => each.id === id);
    const action = button.dataset.missing === "put" ? () => this.#putIn(line) : () => pin(line);
    this.card.runAction(button, async () => {
      await action();
      showSnackbar(getText(button.dataset.missing === "put" ? "putIn" : "pinned"));
      await this.card.chat.refreshContext();
      // A pin makes no new version of the context, so the card stays as it is.
      if (this.element.isConnected) {
        this.answer = null;
        await this.refresh();
      }
    });
  }

  // A hand edit like any other: it has its version, and can be undone.
  #putIn(line) {
    const { heading } = this.answer;
    const { summary, session } = this.card;
    const start = summary.includes(heading) ? summary : `${summary}\n\n${heading}`;
    return callApi(
      "PATCH",
      `sessions/${session.id}/summary`,
      { summary: `${start}\n- ${line.text}` },
      { "If-Match": `"${session.context_version}"` },
    );
  }
}

function pin(line) {
  return callApi("POST", `messages/${line.message}/pin`, { pinned: true });
}
