// The cards at the boundaries: where each stands among the messages, and which of them tells of what the model sees now.

import { api, piece } from "./api.js";
import { Card } from "./card.js";

const ASKED = 20; // runs at once
const MOST_ASKED = 100;

export class Cards {
  #runs = []; // those that were applied, the newest first
  #next = null; // the address of earlier ones
  #session = null;
  #made = new Map(); // run → its card, on the page or not
  #forms = []; // of messages that are sent in another form than they were written

  constructor(session, timeline) {
    this.session = session;
    this.timeline = timeline;
    timeline.chat.addEventListener(
      "click",
      ({ target }) => "goesTo" in target.dataset && this.#goTo(target.dataset.goesTo),
    );
    timeline.chat.addEventListener("stretched", () => this.place());
  }

  async #goTo(seq) {
    this.timeline.chat.querySelector("dialog[open]")?.close();
    const article = await this.timeline.stretch.reach(Number(seq));
    if (!article) return;
    this.timeline.show(article);
    article.tabIndex = -1;
    article.focus({ preventScroll: true });
  }

  // Ask what the model sees now.
  async refresh() {
    const many = Math.min(Math.max(ASKED, this.#runs.length), MOST_ASKED);
    const [session, applied, running, forms] = await Promise.all([
      api("GET", `sessions/${this.session}`),
      this.#ask(`?status=applied&limit=${many}`),
      this.#ask("?status=running&limit=1"),
      piece(`/c/${this.session}/shortened/`),
    ]);
    this.#session = session;
    this.#runs = applied.results;
    this.#next = applied.next;
    this.#takeForms(forms);
    this.place();
    return { session, summarizing: running.results.length > 0 };
  }

  #ask(query) {
    return api("GET", `sessions/${this.session}/compactions${query}`);
  }

  // The runs of earlier messages, when these are on the page.
  async #askOlder() {
    const [runs, next] = [this.#runs, this.#next];
    const first = this.timeline.list.querySelector("[data-seq]");
    if (!next || !first || placeOf(runs.at(-1)) <= Number(first.dataset.seq)) return;
    this.#next = null;
    const page = await this.#ask(new URL(next).search);
    if (runs !== this.#runs) return; // asked anew meanwhile
    this.#runs.push(...page.results);
    this.#next = page.next;
    this.place();
  }

  // A card stays the one it is, open or being edited, as long as what it tells is true.
  place() {
    if (!this.#session) return;
    this.timeline.dim(this.#session.compact_boundary_seq);
    const placed = new Set();
    for (const { run, seq, current } of this.#shown()) {
      const version = `${current ? this.#session.context_version : "earlier"} ${run.status}`;
      const card = this.#made.get(run.id);
      if (!card || (card.dataset.version !== version && !("editing" in card.dataset)))
        this.#make(run, current, version);
      if (this.#put(this.#made.get(run.id), seq)) placed.add(run.id);
    }
    for (const [run, card] of this.#made) if (!placed.has(run)) card.remove();
    for (const form of this.#forms) this.#putForm(form);
    this.#askOlder().catch((problem) => console.warn(problem));
  }

  // What is being looked at stays open.
  #takeForms(forms) {
    const open = new Set(this.#forms.filter((form) => form.open).map((form) => form.dataset.of));
    for (const form of this.#forms) form.remove();
    this.#forms = forms;
    for (const form of forms) form.open = open.has(form.dataset.of);
  }

  // Beside the original: the model's form of a message before its foot, that of a tool's result after its call.
  #putForm(form) {
    const { list } = this.timeline;
    const call = list.querySelector(`[data-result="${form.dataset.of}"]`)?.closest(".call");
    const foot = list.querySelector(`[data-message="${form.dataset.of}"] > .foot`);
    if (call) call.after(form);
    else foot?.before(form);
  }

  // The newest run at each boundary; and one that moved none, after the last message it changed.
  #shown() {
    const boundary = this.#session.compact_boundary_seq ?? 0;
    const applied = this.#runs.filter((run) => (run.boundary_after ?? 0) <= boundary);
    const found = new Map();
    for (const run of applied) {
      const seq = placeOf(run);
      if (seq > 1 && !found.has(seq)) found.set(seq, { run, seq, current: run === applied[0] });
    }
    return found.values();
  }

  #make(run, current, version) {
    const old = this.#made.get(run.id);
    const [element] = this.timeline.stamp("card-piece");
    new Card(element, {
      run,
      session: this.#session,
      current,
      changed: () => this.timeline.chat.contextChanged(),
    });
    element.dataset.version = version;
    if (old) {
      old.replaceWith(element);
      element.querySelector("details").open = old.querySelector("details").open;
    }
    this.#made.set(run.id, element);
  }

  #put(card, seq) {
    const articles = [...this.timeline.list.querySelectorAll("[data-seq]")];
    const first = articles.find((article) => Number(article.dataset.seq) >= seq);
    const shownFrom = Number(articles[0]?.dataset.seq ?? Infinity);
    if (shownFrom > seq || !articles.length) return false; // its place is among earlier messages
    if (!first && !this.timeline.stretch.atNewest) return false; // or among later ones
    if (first && first.previousElementSibling !== card) first.before(card);
    else if (!first && articles.at(-1).nextElementSibling !== card) articles.at(-1).after(card);
    return true;
  }
}

// The message that a run's card stands before.
function placeOf(run) {
  return run.boundary_after ?? Math.max(0, ...run.targets.map((target) => target.seq)) + 1;
}
