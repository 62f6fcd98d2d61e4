// Show one compaction as a card: its numbers, its texts, and the actions on it.

import { callApi } from "./api.js";
import { moveContext } from "./context_moves.js";
import { formatCost, formatDuration, formatNumber, formatSaving } from "./formats.js";
import { isInputMethodKey } from "./keyboard.js";
import { getMarkdownView } from "./markdown.js";
import { MissingLines } from "./missing_lines.js";
import { showSnackbar } from "./snackbar.js";
import { initTabs } from "./tabs.js";
import { getRoleName, getText, hasText, textKey } from "./texts.js";

const EXCERPT_CHARACTERS = 240; // of a message that is kept as it was written

export class SummaryCard {
  constructor(element, { run, session, history, current, chat }) {
    Object.assign(this, { element, run, session, history, current, chat });
    this.summary = (current ? session.compacted_summary : run.summary_after) ?? "";
    element.dataset.run = run.id;
    this.#showFacts();
    this.#setUpTabs();
    if (current) this.#setUpActions();
    if (current && this.summary && this.#find(".card-missing"))
      this.missing = new MissingLines(this);
  }

  #find(selector) {
    return this.element.querySelector(selector);
  }

  #showFacts() {
    const { run } = this;
    const { tokens_before: before, tokens_after: after } = run;
    const facts = {
      count: run.messages_compacted ? getText("summarized", { count: run.messages_compacted }) : "",
      saving:
        before && after < before
          ? getText("shorter", { percent: Math.round((1 - after / before) * 100) })
          : "",
      tokens:
        before === null
          ? ""
          : `${formatNumber(before)} → ${formatNumber(after)} ${getText("tokens")}`,
      time: run.duration_ms === null ? "" : formatDuration(run.duration_ms),
      model: run.model,
      cost: run.cost ? getText("cost", { cost: formatCost(run.cost) }) : "",
      stages: run.stages_used.map(getStageName).join(" · "),
      checks: describeChecks(run.verification),
      focus: describeOrigin(run),
    };
    for (const [name, text] of Object.entries(facts))
      this.#find(`.card-${name}`).textContent = text;
    if (!run.boundary_after)
      this.#setTitle(getText("shortened", { count: run.messages_compacted }));
    else if (!this.current) this.#setTitle(getText("superseded"));
    else if (!this.summary) this.#setTitle(getText("leftOutAbove"));
    if (!this.current) this.element.dataset.superseded = "";
  }

  #setTitle(text) {
    this.#find(".card-title").textContent = text;
  }

  #setUpTabs() {
    const { run } = this;
    const availability = {
      summary: this.summary,
      changes: this.summary,
      targets: run.targets.length,
      kept: this.current && run.boundary_after,
    };
    for (const [name, isAvailable] of Object.entries(availability))
      this.#find(`[data-tab="${name}"]`).hidden = !isAvailable;
    if (this.current && this.history.is_edited)
      this.#find(".card-focus").textContent = getText("edited");
    if (Object.keys(run.state_after ?? {}).length) this.#renderState(run.state_after);
    this.#find("details").addEventListener("toggle", () => this.#renderTabs(), { once: true });
  }

  // Fill the tabs when the card is opened for the first time.
  #renderTabs() {
    const draw = {
      summary: () => getMarkdownView(this.#find(".card-summary")).showFinal(this.summary),
      changes: (panel) => this.#renderChanges(panel),
      targets: (panel) => this.#renderTargets(panel.firstElementChild),
      kept: (panel) => this.#renderPinned(panel.firstElementChild),
    };
    const show = async (name, panel) => {
      try {
        await draw[name]?.(panel);
      } catch (problem) {
        showSnackbar(getText("failed", { why: problem.message }));
      }
    };
    initTabs(this.element, { onSelect: show });
    if (this.current)
      callApi("GET", `sessions/${this.session.id}/state`)
        .then((state) => this.#renderState(state))
        .catch(() => {});
  }

  async #renderChanges(panel) {
    const before = this.current ? this.history.previous_summary : this.run.summary_before;
    panel.textContent = before ? "" : getText("firstSummary");
    if (before) (await import("./word_diff.js")).renderDiff(panel, before, this.summary);
  }

  #renderTargets(list) {
    list.replaceChildren(
      ...this.run.targets.map(
        ({ seq, role, tool, method, chars_before: before, chars_after: after }) =>
          createRow(
            seq,
            tool || getRoleName(role),
            getMethodName(method),
            after
              ? formatSizes(before, after)
              : getText(method === "left_out" ? "leftOutChars" : "inTheSummary", {
                  count: before,
                }),
          ),
      ),
    );
  }

  async #renderPinned(list) {
    const { messages } = await callApi("GET", `sessions/${this.session.id}/context/preview`);
    const pinned = messages.filter(({ seq }) => seq && seq < this.run.boundary_after);
    list.replaceChildren(
      ...pinned.map(({ seq, role, tool_name: tool, content }) =>
        createRow(seq, tool || getRoleName(role), content.slice(0, EXCERPT_CHARACTERS)),
      ),
    );
    if (!pinned.length) list.append(createTextElement("li", getText("nothingPinned")));
  }

  #renderState({ state = {}, memory = [], memory_summary: folded = "" }) {
    const panel = this.#find('[data-view="state"]');
    const parts = Object.entries({
      ...state,
      memory: [...(folded ? [folded] : []), ...memory],
    }).filter(([, items]) => items.length);
    this.#find('[data-tab="state"]').hidden = !parts.length;
    panel.replaceChildren();
    for (const [name, items] of parts) {
      const list = document.createElement("ul");
      list.append(...items.map((item) => createTextElement("li", item)));
      panel.append(createTextElement("h3", getText(textKey("state", name))), list);
    }
  }

  #setUpActions() {
    const undo = this.#find(".card-undo");
    undo.hidden = !this.history.can_undo;
    undo.addEventListener("click", () =>
      this.runAction(undo, () => moveContext(this.chat, "undo")),
    );
    this.#find(".card-acts").hidden = !this.summary;
    for (const opener of this.element.querySelectorAll("[data-form]"))
      opener.addEventListener("click", () => this.#showForm(opener.dataset.form));
    for (const cancel of this.element.querySelectorAll("[data-cancel]"))
      cancel.addEventListener("click", () => this.#showForm(null));
    const actions = {
      edit: (form) => this.#saveSummary(form.summary.value),
      redo: (form) => this.#summarizeAgain(form.focus.value),
    };
    for (const form of this.element.querySelectorAll(".card-form")) {
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.runAction(form.querySelector(".primary"), () =>
          actions[form.dataset.for](form.elements),
        );
      });
      form.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || isInputMethodKey(event)) return;
        event.stopPropagation();
        this.#showForm(null);
      });
    }
  }

  #showForm(name) {
    for (const form of this.element.querySelectorAll(".card-form"))
      form.hidden = form.dataset.for !== name;
    this.#find(".card-acts").hidden = Boolean(name);
    this.element.toggleAttribute("data-editing", Boolean(name));
    if (name === "edit") this.#find("textarea").value = this.summary;
    const target =
      this.#find(".card-form:not([hidden]) :is(textarea, input)") ?? this.#find("[data-form]");
    target.focus();
  }

  // A button that is disabled would lose the focus.
  async runAction(button, action) {
    if (button.ariaDisabled) return;
    button.ariaDisabled = "true";
    try {
      await action();
    } catch (problem) {
      showSnackbar(
        [409, 412].includes(problem.status)
          ? getText("contextChanged")
          : getText("failed", { why: problem.message }),
      );
    } finally {
      button.ariaDisabled = null;
    }
  }

  async #saveSummary(summary) {
    await callApi(
      "PATCH",
      `sessions/${this.session.id}/summary`,
      { summary },
      { "If-Match": `"${this.session.context_version}"` },
    );
    delete this.element.dataset.editing;
    showSnackbar(getText("summarySaved"));
    await this.chat.refreshContext();
  }

  // The messages themselves are summarized, because a summary of a summary loses more. The present
  // summary stays until the new one takes its place.
  async #summarizeAgain(instructions) {
    await callApi("POST", `sessions/${this.session.id}/compact`, { instructions, replace: true });
    this.#showForm(null);
    delete this.element.dataset.editing;
    showSnackbar(getText("redoing"));
    await this.chat.refreshContext();
  }
}

function formatSizes(before, after) {
  const sizes = `${formatNumber(before)} → ${formatNumber(after)} ${getText("characters")}`;
  return sizes + formatSaving(before, after);
}

function createRow(seq, ...texts) {
  const item = document.createElement("li");
  const link = createTextElement("button", `#${seq}`);
  link.type = "button";
  link.dataset.goesTo = seq;
  item.append(link, ...texts.map((text) => createTextElement("span", text)));
  return item;
}

function createTextElement(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

// A stage that this page does not know keeps its name.
function getStageName(stage) {
  const key = /^[a-z]+(_[a-z]+)*$/.test(stage) ? textKey("stage", stage) : "";
  return hasText(key) ? getText(key) : stage;
}

function getMethodName(method) {
  return getText(textKey("method", method));
}

// Return what the summary was asked to pay attention to, or that a program brought it.
function describeOrigin({ trigger, instructions }) {
  if (trigger === "by_client") return getText("byProgram");
  return instructions ? getText("focusedOn", { focus: instructions }) : "";
}

// Return what the checks of a summary led to, in a few words; an empty text where nothing was done.
function describeChecks({ checks, findings = [], extract } = {}) {
  if (extract) return getText("extract");
  if (!checks) return "";
  const count = findings.filter(({ action }) => action !== "refused").length;
  return count ? getText("checkedRepairs", { count }) : getText("checked");
}
