// Show the ledger of a session, what is remembered word for word, and let people change it.

import { callApi } from "./api.js";
import { formatCount } from "./formats.js";
import { getText } from "./texts.js";

const PAGE_LIMIT = 100;

export class Ledger {
  #policyNames = null; // of the policies that have a ledger
  #newestLoad = 0; // only the newest answer of the server is shown

  constructor(chat, panel) {
    this.chat = chat;
    this.element = panel.querySelector(".ledger");
    this.list = this.#find(".ledger-lines");
    this.#find(".ledger-form").addEventListener("submit", (event) => this.#addLine(event));
    this.list.addEventListener("click", (event) => this.#handleClick(event));
    this.list.addEventListener("submit", (event) => this.#saveText(event));
  }

  #find(selector) {
    return this.element.querySelector(selector);
  }

  get #path() {
    return `sessions/${this.chat.session}/ledger`;
  }

  // Show the lines as they are stored. Under a policy without a ledger there is nothing to show.
  async refresh(policyName) {
    this.#policyNames ??= await loadPolicyNames();
    this.element.hidden = !this.#policyNames.has(policyName);
    if (!this.element.hidden) await this.#reload();
  }

  // The rules that hold always stand before the lines of this session.
  async #reload() {
    const load = ++this.#newestLoad;
    const [lines, rules] = await Promise.all([loadAll(this.#path), loadAll("rules")]);
    if (load !== this.#newestLoad) return;
    const liftedHere = new Set(lines.map(({ rule }) => rule));
    const others = rules.filter(({ id }) => !liftedHere.has(id));
    this.#render([
      ...others.map((rule) => ({
        ...rule,
        id: `rule-${rule.id}`,
        rule: rule.id,
        isOnlyRule: true,
      })),
      ...lines,
    ]);
  }

  #render(lines) {
    const shown = lines.filter(({ status }) => status !== "superseded");
    const current = shown.filter(({ status }) => status !== "dropped");
    this.#find(".ledger-count").textContent = formatCount(current.length);
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    this.#placeItems(shown.map((line) => this.#fillItem(this.#getItem(line), line)));
    if (focused) this.#restoreFocus(focused);
  }

  // The focus stays on what was pressed, or goes to what is next to it.
  #restoreFocus(focused) {
    const item = focused.closest("[data-line]");
    const isHere = item.isConnected;
    const candidates = isHere ? [focused, ...item.querySelectorAll("[data-act]")] : [];
    const target = candidates.find((each) => each.checkVisibility());
    (target ?? this.#find("summary")).focus();
  }

  // Only what moved is moved: an editor that is open, a press and the focus outlive a change that
  // was made elsewhere.
  #placeItems(items) {
    const placed = new Set(items);
    for (const item of [...this.list.children]) if (!placed.has(item)) item.remove();
    let next = this.list.firstElementChild;
    for (const item of items) {
      if (item === next) next = next.nextElementSibling;
      else this.list.insertBefore(item, next);
    }
  }

  #getItem({ id }) {
    return (
      this.#find(`[data-line="${id}"]`) ??
      this.chat.timeline.cloneTemplate("ledger-line-template")[0]
    );
  }

  #fillItem(item, line) {
    Object.assign(item.dataset, {
      line: line.id,
      kind: line.kind,
      status: line.status ?? "current",
      rule: line.rule ?? "",
      path: line.isOnlyRule ? `rules/${line.rule}` : `${this.#path}/${line.id}`,
    });
    item.querySelector(".ledger-kind").textContent = this.#find(
      `.ledger-form [value="${line.kind}"]`,
    ).textContent;
    item.querySelector(".ledger-text").textContent = line.text;
    const link = item.querySelector(".sent-seq");
    link.hidden = !line.message;
    link.textContent = `#${line.seq}`;
    link.dataset.goesTo = line.seq;
    const isDropped = line.status === "dropped";
    item.querySelector("[data-state=corrected]").hidden = !line.corrected_by;
    item.querySelector("[data-state=forgotten]").hidden = !line.forgotten_by;
    item.querySelector("[data-act=pin]").ariaPressed = String(line.pinned ?? false);
    item.querySelector("[data-act=always]").ariaPressed = String(Boolean(line.rule));
    for (const act of ["pin", "always", "edit", "drop"])
      item.querySelector(`[data-act=${act}]`).hidden = isDropped;
    if (line.isOnlyRule)
      for (const act of ["pin", "drop"]) item.querySelector(`[data-act=${act}]`).hidden = true;
    item.querySelector("[data-act=restore]").hidden = !isDropped;
    return item;
  }

  #handleClick({ target }) {
    const button = target.closest("[data-act]");
    if (!button) return;
    const item = button.closest("[data-line]");
    const actions = {
      pin: () => this.#change(item, { pinned: button.ariaPressed !== "true" }),
      always: () => this.#toggleRule(item),
      drop: () => this.#change(item, { status: "dropped" }),
      restore: () => this.#change(item, { status: "current" }),
      edit: () => openForm(item),
      cancel: () => closeForm(item),
    };
    actions[button.dataset.act]();
  }

  #saveText(event) {
    event.preventDefault();
    const item = event.target.closest("[data-line]");
    closeForm(item);
    this.#change(item, { text: event.target.elements.text.value });
  }

  #addLine(event) {
    event.preventDefault();
    const { kind, text } = event.target.elements;
    this.#call("POST", this.#path, { kind: kind.value, text: text.value }).then((isStored) => {
      if (isStored) text.value = "";
    });
  }

  #change(item, fields) {
    return this.#call("PATCH", item.dataset.path, fields);
  }

  // Let a line hold in all sessions of the user, or no longer.
  #toggleRule({ dataset }) {
    return dataset.rule
      ? this.#call("DELETE", `rules/${dataset.rule}`)
      : this.#call("POST", "rules", { line: Number(dataset.line) });
  }

  // Send a change and show the lines as they are then. Return whether it was stored.
  async #call(method, path, body) {
    const report = this.#find(".ledger-problem");
    report.hidden = true;
    try {
      await callApi(method, path, body);
      await this.#reload();
      return true;
    } catch (problem) {
      report.textContent = getText("failed", { why: problem.message });
      report.hidden = false;
      return false;
    }
  }
}

function openForm(item) {
  const { text } = item.querySelector(".ledger-edit").elements;
  text.value = item.querySelector(".ledger-text").textContent;
  showForm(item, true);
  text.focus();
}

function closeForm(item) {
  showForm(item, false);
  item.querySelector("[data-act=edit]").focus();
}

function showForm(item, isShown) {
  item.querySelector(".ledger-edit").hidden = !isShown;
  item.querySelector(".ledger-text").hidden = isShown;
  item.querySelector(".ledger-acts").hidden = isShown;
}

async function loadAll(path) {
  const rows = [];
  let query = `?limit=${PAGE_LIMIT}`;
  while (query) {
    const page = await callApi("GET", path + query);
    rows.push(...page.results);
    query = page.next && new URL(page.next).search;
  }
  return rows;
}

async function loadPolicyNames() {
  const { results } = await callApi("GET", "policies");
  return new Set(results.filter(({ knobs }) => knobs.ledger.ratio).map(({ name }) => name));
}
