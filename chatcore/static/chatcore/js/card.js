// One card: what a compaction did, in figures and word for word, and what can be done about it.

import { api } from "./api.js";
import { viewOf } from "./markdown.js";
import { snackbar } from "./snackbar.js";
import { tabbed } from "./tabs.js";
import { camel, say, shortCount, shortTime } from "./words.js";
import { showDiff } from "./worddiff.js";

const EXCERPT = 240; // characters of a message that is kept as it was written

export class Card {
  constructor(element, { run, session, current, changed }) {
    Object.assign(this, { element, run, session, current, changed });
    this.summary = (current ? session.compacted_summary : run.summary_after) ?? "";
    element.dataset.run = run.id;
    this.#facts();
    this.#views();
    if (current) this.#acts();
  }

  #find(selector) {
    return this.element.querySelector(selector);
  }

  #facts() {
    const { run } = this;
    const facts = {
      count: run.messages_compacted ? say("summarized", { count: run.messages_compacted }) : "",
      tokens:
        run.tokens_before === null
          ? ""
          : `${shortCount(run.tokens_before)} → ${shortCount(run.tokens_after)} ${say("tokens")}`,
      time: run.duration_ms === null ? "" : shortTime(run.duration_ms),
      model: run.model,
      cost: run.cost
        ? say("cost", { cost: run.cost < 0.01 ? run.cost.toPrecision(2) : run.cost.toFixed(2) })
        : "",
      stages: run.stages_used.join(" + "),
      focus: run.instructions ? say("focusedOn", { focus: run.instructions }) : "",
    };
    for (const [name, text] of Object.entries(facts))
      this.#find(`.card-${name}`).textContent = text;
    if (!run.boundary_after) this.#title(say("shortened", { count: run.messages_compacted }));
    else if (!this.current) this.#title(say("superseded"));
    if (!this.current) this.element.dataset.superseded = "";
  }

  #title(text) {
    this.#find(".card-title").textContent = text;
  }

  #views() {
    const { run } = this;
    const there = {
      summary: this.summary,
      changes: this.summary,
      targets: run.targets.length,
      kept: this.current && run.boundary_after,
    };
    for (const [name, yes] of Object.entries(there))
      this.#find(`[data-tab="${name}"]`).hidden = !yes;
    if (this.current && this.summary !== (run.summary_after ?? ""))
      this.#find(".card-focus").textContent = say("edited");
    if (Object.keys(run.state_after ?? {}).length) this.#state(run.state_after);
    this.#find("details").addEventListener("toggle", () => this.#open(), { once: true });
  }

  // Nothing is drawn of a card that nobody opens.
  #open() {
    const draw = {
      summary: () => viewOf(this.#find(".card-summary")).finish(this.summary),
      changes: (panel) => this.#changes(panel),
      targets: (panel) => this.#targets(panel.firstElementChild),
      kept: (panel) => this.#kept(panel.firstElementChild),
    };
    tabbed(this.element, { shown: (name, panel) => draw[name]?.(panel) });
    if (this.current)
      api("GET", `sessions/${this.session.id}/state`)
        .then((kept) => this.#state(kept))
        .catch(() => {});
  }

  #changes(panel) {
    if (this.run.summary_before) showDiff(panel, this.run.summary_before, this.summary);
    else panel.textContent = say("firstSummary");
  }

  #targets(list) {
    list.replaceChildren(
      ...this.run.targets.map(
        ({ seq, role, tool, method, chars_before: before, chars_after: after }) =>
          row(
            seq,
            tool || roleName(role),
            methodName(method),
            `${before.toLocaleString()} → ${after.toLocaleString()} ${say("characters")}`,
          ),
      ),
    );
  }

  async #kept(list) {
    const { messages } = await api("GET", `sessions/${this.session.id}/context/preview`);
    const kept = messages.filter(({ seq }) => seq && seq < this.run.boundary_after);
    list.replaceChildren(
      ...kept.map(({ seq, role, tool_name: tool, content }) =>
        row(seq, tool || roleName(role), content.slice(0, EXCERPT)),
      ),
    );
    if (!kept.length) list.append(line("li", say("nothingPinned")));
  }

  #state({ state = {}, memory = [], memory_summary: folded = "" }) {
    const panel = this.#find('[data-view="state"]');
    const parts = Object.entries({
      ...state,
      memory: [...(folded ? [folded] : []), ...memory],
    }).filter(([, items]) => items.length);
    this.#find('[data-tab="state"]').hidden = !parts.length;
    panel.replaceChildren();
    for (const [name, items] of parts) {
      const list = document.createElement("ul");
      list.append(...items.map((item) => line("li", item)));
      panel.append(line("h3", say(camel("state", name))), list);
    }
  }

  #acts() {
    const undo = this.#find(".card-undo");
    undo.hidden = false;
    undo.addEventListener("click", () => this.#doing(undo, () => this.#undo()));
    this.#find(".card-acts").hidden = !this.summary;
    for (const opener of this.element.querySelectorAll("[data-form]"))
      opener.addEventListener("click", () => this.#show(opener.dataset.form));
    for (const cancel of this.element.querySelectorAll("[data-cancel]"))
      cancel.addEventListener("click", () => this.#show(null));
    const acts = {
      edit: (form) => this.#edit(form.summary.value),
      redo: (form) => this.#redo(form.focus.value),
    };
    for (const form of this.element.querySelectorAll(".card-form")) {
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.#doing(form.querySelector(".primary"), () => acts[form.dataset.for](form.elements));
      });
      form.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        this.#show(null);
      });
    }
  }

  #show(name) {
    for (const form of this.element.querySelectorAll(".card-form"))
      form.hidden = form.dataset.for !== name;
    this.#find(".card-acts").hidden = Boolean(name);
    this.element.toggleAttribute("data-editing", Boolean(name));
    if (name === "edit") this.#find("textarea").value = this.summary;
    const shown =
      this.#find(".card-form:not([hidden]) :is(textarea, input)") ?? this.#find("[data-form]");
    shown.focus();
  }

  async #doing(button, act) {
    button.disabled = true;
    try {
      await act();
    } catch (problem) {
      snackbar(
        [409, 412].includes(problem.status)
          ? say("contextChanged")
          : say("failed", { why: problem.message }),
      );
    } finally {
      button.disabled = false;
    }
  }

  async #undo() {
    await api("POST", `compactions/${this.run.id}/rewind`);
    snackbar(say("undone"));
    await this.changed();
  }

  async #edit(summary) {
    await api(
      "PATCH",
      `sessions/${this.session.id}/summary`,
      { summary },
      { "If-Match": `"${this.session.context_version}"` },
    );
    delete this.element.dataset.editing;
    snackbar(say("summarySaved"));
    await this.changed();
  }

  // The same messages again, from themselves: a summary of the summary would only lose more.
  async #redo(instructions) {
    await api("POST", `compactions/${this.run.id}/rewind`);
    delete this.element.dataset.editing;
    await api("POST", `sessions/${this.session.id}/compact`, {
      instructions,
      up_to_seq: this.run.boundary_after - 1,
    });
    snackbar(say("redoing"));
    await this.changed();
  }
}

function row(seq, ...texts) {
  const item = document.createElement("li");
  const link = line("button", `#${seq}`);
  link.type = "button";
  link.dataset.goesTo = seq;
  item.append(link, ...texts.map((text) => line("span", text)));
  return item;
}

function line(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

export function roleName(role) {
  return say(
    { user: "roleUser", assistant: "roleAssistant", tool: "roleTool" }[role] ?? "roleAside",
  );
}

function methodName(method) {
  return say(camel("method", method));
}
