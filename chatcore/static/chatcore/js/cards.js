// The cards at the boundaries: what a summary stands for, what it saved, how to read it and how to undo it.

import { api } from "./api.js";
import { viewOf } from "./markdown.js";
import { snackbar } from "./snackbar.js";
import { say, shortCount, shortTime } from "./words.js";

const SHOWN_RUNS = 20;

export class Cards {
  #runs = [];
  #boundary = null;
  #open = new Set(); // the runs whose summary is being read

  constructor(session, timeline) {
    this.session = session;
    this.timeline = timeline;
  }

  // Ask what the model sees now.
  async refresh() {
    const [session, page] = await Promise.all([
      api("GET", `sessions/${this.session}`),
      api("GET", `sessions/${this.session}/compactions?limit=${SHOWN_RUNS}`),
    ]);
    this.#boundary = session.compact_boundary_seq;
    this.#runs = page.results;
    this.place();
    return { session, summarizing: this.#runs.some((run) => run.status === "running") };
  }

  place() {
    this.timeline.dim(this.#boundary);
    const cards = [...this.timeline.list.querySelectorAll(".card")];
    this.#open = new Set(cards.filter((card) => card.querySelector("details").open).map((card) => card.dataset.run));
    for (const card of cards) card.remove();
    const applied = this.#runs.filter((run) => run.status === "applied" && run.boundary_after && run.boundary_after <= (this.#boundary ?? 0));
    const seen = new Set();
    for (const run of applied) {
      if (seen.has(run.boundary_after)) continue;
      seen.add(run.boundary_after);
      this.#put(run, run.boundary_after === this.#boundary);
    }
  }

  #put(run, current) {
    const articles = [...this.timeline.list.querySelectorAll("[data-seq]")];
    const first = articles.find((article) => Number(article.dataset.seq) >= run.boundary_after);
    const shownFrom = Number(articles[0]?.dataset.seq ?? Infinity);
    if (!first || shownFrom > run.boundary_after) return; // its place is among earlier messages
    first.before(this.#card(run, current));
  }

  #card(run, current) {
    const [card] = this.timeline.stamp("card-piece");
    card.dataset.run = run.id;
    card.querySelector("details").open = this.#open.has(run.id);
    const fill = (name, text) => (card.querySelector(`.card-${name}`).textContent = text);
    fill("count", say("summarized", { count: run.messages_compacted }));
    if (run.tokens_before !== null) fill("tokens", `${shortCount(run.tokens_before)} → ${shortCount(run.tokens_after)} ${say("tokens")}`);
    if (run.duration_ms !== null) fill("time", shortTime(run.duration_ms));
    fill("model", run.model);
    viewOf(card.querySelector(".card-summary")).finish(run.summary_after ?? "");
    if (!current) {
      card.dataset.superseded = "";
      fill("title", say("superseded"));
    }
    const undo = card.querySelector(".card-undo");
    undo.hidden = !current;
    undo.addEventListener("click", () => this.#undo(run, undo));
    return card;
  }

  async #undo(run, button) {
    button.disabled = true;
    try {
      await api("POST", `compactions/${run.id}/rewind`);
      snackbar(say("undone"));
      await this.refresh();
      this.timeline.chat.meter.refresh();
    } catch (problem) {
      button.disabled = false;
      snackbar(say("failed", { why: problem.message }));
    }
  }
}
