// Place the summary cards between the messages, at the boundary of each compaction run.

import { callApi, fetchElements } from "./api.js";
import { buildPath } from "./paths.js";
import { showSnackbar } from "./snackbar.js";
import { addTexts, getText } from "./texts.js";

const PAGE_SIZE = 20; // runs in one request
const MAX_PAGE_SIZE = 100;
// A summary that no run wrote: it came with a fork or an import.
const NO_RUN = Object.freeze({
  id: "context",
  status: "applied",
  tokens_before: null,
  duration_ms: null,
  model: "",
  stages_used: [],
  targets: [],
});

export class SummaryCards {
  #runs = []; // the applied runs, newest first
  #nextUrl = null; // the URL of the page with older runs
  #sessionData = null;
  #history = null; // what can be undone and redone
  #elements = new Map(); // run id → its card, whether or not it is on the page
  #sentForms = []; // what the model sees in place of a message that was shortened
  #SummaryCard; // the class, loaded when there is something to show
  #refreshed = Promise.resolve(); // when the newest refresh has placed its cards
  #opensCurrent = false; // the user asked for the summary in force, and its card is not there yet

  constructor(session, timeline) {
    this.session = session;
    this.timeline = timeline;
    timeline.chat.addEventListener(
      "click",
      ({ target }) => "goesTo" in target.dataset && this.goToMessage(target.dataset.goesTo),
    );
    timeline.chat.addEventListener("pagechange", () => this.placeCards());
  }

  // Show a message, and give it the focus.
  async goToMessage(seq) {
    this.timeline.chat.querySelector("dialog[open]")?.close();
    const article = await this.timeline.pager.loadMessage(Number(seq));
    if (!article) return;
    this.timeline.scrollToMessage(article);
    article.tabIndex = -1;
    article.focus({ preventScroll: true });
  }

  // Fetch the state of the context and the newest runs. Return {session, history}.
  refresh() {
    this.#refreshed = this.#refresh();
    return this.#refreshed;
  }

  async #refresh() {
    const limit = Math.min(Math.max(PAGE_SIZE, this.#runs.length), MAX_PAGE_SIZE);
    const [[state, ...forms], applied] = await Promise.all([
      takeFirstState() ?? fetchElements(buildPath(`c/${this.session}/context/`)),
      this.#fetchRuns(`?status=applied&limit=${limit}`),
    ]);
    const { session, history } = JSON.parse(state.dataset.context);
    if (state.firstElementChild) addTexts(state.firstElementChild); // those of the cards
    if (applied.results.length || session.compact_boundary_seq > 1)
      ({ SummaryCard: this.#SummaryCard } = await import("./summary_card.js"));
    this.#sessionData = session;
    this.#history = history;
    this.#runs = applied.results;
    this.#nextUrl = applied.next;
    this.#replaceForms(forms);
    this.placeCards();
    return { session, history };
  }

  // Return the run that is going on.
  async findRunning() {
    return (await this.#fetchRuns("?status=running&limit=1")).results[0];
  }

  #fetchRuns(query) {
    return callApi("GET", `sessions/${this.session}/compactions${query}`);
  }

  // Load older runs when the messages on the page reach back that far.
  async #loadOlderRuns() {
    const [runs, next] = [this.#runs, this.#nextUrl];
    const first = this.timeline.list.querySelector("[data-seq]");
    if (!next || !first || getBoundarySeq(runs.at(-1)) <= Number(first.dataset.seq)) return;
    this.#nextUrl = null;
    const page = await this.#fetchRuns(new URL(next).search);
    if (runs !== this.#runs) return; // a newer refresh replaced the list
    this.#runs.push(...page.results);
    this.#nextUrl = page.next;
    this.placeCards();
  }

  // Keep a card element while its content is valid, so that it stays open or in edit mode.
  placeCards() {
    if (!this.#sessionData) return;
    this.timeline.markCompacted(this.#sessionData.compact_boundary_seq);
    const placed = new Set();
    for (const { run, seq, current } of this.#visibleRuns()) {
      const version = `${current ? this.#sessionData.context_version : "earlier"} ${run.status}`;
      const card = this.#elements.get(run.id);
      if (!card || (card.dataset.version !== version && !("editing" in card.dataset)))
        this.#createCard(run, current, version);
      if (this.#placeCard(this.#elements.get(run.id), seq)) placed.add(run.id);
    }
    for (const [run, card] of this.#elements) if (!placed.has(run)) removeCard(card);
    for (const form of this.#sentForms) this.#placeForm(form);
    if (this.#opensCurrent) this.#openCurrentCard();
    this.#loadOlderRuns().catch((problem) => console.warn(problem));
  }

  // Keep the open ones open.
  #replaceForms(forms) {
    const open = new Set(
      this.#sentForms.filter((form) => form.open).map((form) => form.dataset.of),
    );
    for (const form of this.#sentForms) form.remove();
    this.#sentForms = forms;
    for (const form of forms) form.open = open.has(form.dataset.of);
  }

  // Put the shortened form next to the original: before the footer of a message, or after the tool
  // call whose result it is.
  #placeForm(form) {
    const { list } = this.timeline;
    const call = list.querySelector(`[data-result="${form.dataset.of}"]`)?.closest(".call");
    const foot = list.querySelector(`[data-message="${form.dataset.of}"] > .foot`);
    if (call) call.after(form);
    else foot?.before(form);
  }

  // Return the newest run at each boundary. A run that moved no boundary stands after the last
  // message that it changed. The boundary in force has a card in any case: the context decides
  // where it is, and a run only adds facts.
  #visibleRuns() {
    const boundary = this.#sessionData.compact_boundary_seq ?? 0;
    const applied = this.#runs.filter((run) => (run.boundary_after ?? 0) <= boundary);
    if (boundary > 1 && !applied.some((run) => run.boundary_after === boundary))
      applied.unshift({ ...NO_RUN, boundary_after: boundary, messages_compacted: boundary - 1 });
    const cards = new Map();
    for (const run of applied) {
      const seq = getBoundarySeq(run);
      if (seq > 1 && !cards.has(seq)) cards.set(seq, { run, seq, current: run === applied[0] });
    }
    return cards.values();
  }

  // Open the card of the summary in force, and go to it. A run's end is told before its card is
  // fetched, so the card may still be on its way; whatever brings it opens it.
  async openCurrent() {
    this.#opensCurrent = true;
    try {
      await this.#refreshed.catch(() => this.refresh());
      const boundary = this.#sessionData.compact_boundary_seq;
      if (boundary) await this.timeline.pager.loadMessage(boundary);
      this.placeCards();
      if (!boundary && !this.#runs.length) this.#opensCurrent = false; // it was undone meanwhile
    } catch (problem) {
      showSnackbar(getText("failed", { why: problem.message }));
    }
  }

  #openCurrentCard() {
    const card = this.timeline.list.querySelector(".card:not([data-superseded])");
    if (!card) return;
    this.#opensCurrent = false;
    card.querySelector("details").open = true;
    this.timeline.scrollToMessage(card);
    card.querySelector("summary").focus({ preventScroll: true });
  }

  #createCard(run, current, version) {
    const old = this.#elements.get(run.id);
    const [element] = this.timeline.cloneTemplate("card-template");
    new this.#SummaryCard(element, {
      run,
      session: this.#sessionData,
      history: this.#history,
      current,
      chat: this.timeline.chat,
    });
    element.dataset.version = version;
    if (old) {
      const hasFocus = old.contains(document.activeElement);
      old.replaceWith(element);
      element.querySelector("details").open = old.querySelector("details").open;
      if (hasFocus) element.querySelector("summary").focus({ preventScroll: true });
    }
    this.#elements.set(run.id, element);
  }

  #placeCard(card, seq) {
    const articles = [...this.timeline.list.querySelectorAll("[data-seq]")];
    const first = articles.find((article) => Number(article.dataset.seq) >= seq);
    const shownFrom = Number(articles[0]?.dataset.seq ?? Infinity);
    // It belongs to earlier messages, which are not loaded.
    if (shownFrom > seq || !articles.length) return false;
    // It belongs to later messages, which are not loaded.
    if (!first && !this.timeline.pager.hasNewest) return false;
    if (first && first.previousElementSibling !== card) first.before(card);
    else if (!first && articles.at(-1).nextElementSibling !== card) articles.at(-1).after(card);
    return true;
  }
}

// Who undid a summary by keyboard goes on with what stood behind it.
function removeCard(card) {
  const next = card.contains(document.activeElement) && card.nextElementSibling;
  card.remove();
  if (!next) return;
  if (next.matches("article")) next.tabIndex = -1;
  (next.querySelector(":scope > details > summary") ?? next).focus({ preventScroll: true });
}

// Return what the page was sent with, once: from then on it is asked for.
function takeFirstState() {
  const template = document.getElementById("context-state");
  template?.remove();
  return template && [...template.content.children];
}

// Return the seq of the message before which the card of a run stands.
function getBoundarySeq(run) {
  return run.boundary_after ?? Math.max(0, ...run.targets.map((target) => target.seq)) + 1;
}
