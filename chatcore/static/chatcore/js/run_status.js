// Show a run where the reader is, above the composer: what it does, since when, the summary as it is
// written. When it ends the indicator turns into a line with its result.

import { callApi } from "./api.js";
import { tryToMove } from "./context_moves.js";
import { formatDuration, formatElapsed } from "./formats.js";
import { getMarkdownView } from "./markdown.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const LONG_SECONDS = 20; // a shorter wait is not worth a number
const TICK_MS = 1000;

export class RunStatus {
  #run = null; // {id, startedAt, expectedSeconds, count, part, parts, text}
  #endedRuns = new Set();
  #version = null; // of the context that the run made
  #failure = ""; // the id of the run whose failure is shown; empty where none failed
  #closedFailure = null;
  #timer;

  constructor(chat) {
    this.chat = chat;
    this.element = chat.querySelector(".run-status");
    this.element.addEventListener("click", ({ target }) => {
      const act = target.closest("[data-run-act]")?.dataset.runAct;
      if (act) this.#acts[act]();
    });
    this.#find("details").addEventListener("toggle", () => this.#showText());
  }

  #find(selector) {
    return this.element.querySelector(selector);
  }

  get runId() {
    return this.#run?.id;
  }

  // Show a run that has begun. A run that is shown already keeps what is known of it.
  begin({ id, startedAt = Date.now(), expectedSeconds = null, count = null }) {
    if (this.#endedRuns.has(id)) return; // what was asked before its end is answered after it
    if (this.#run?.id === id) {
      this.#run.expectedSeconds ??= expectedSeconds;
      this.#run.count ??= count;
      return this.#tick();
    }
    this.#run = { id, startedAt, expectedSeconds, count, part: 1, parts: 1, text: "" };
    this.#find(".run-written").hidden = true;
    this.#showText();
    this.element.hidden = false;
    this.element.dataset.state = "running";
    this.#find(".run-event").hidden = false;
    // The words come last, because a screen reader announces them when they change.
    this.#find(".run-words").textContent = getText("optimizing");
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#tick();
  }

  // Show what the model has written since the last event.
  progress({ run, part, parts, offset, text }) {
    if (this.#run?.id !== run) this.begin({ id: run });
    const current = this.#run;
    if (part !== current.part || offset === 0) current.text = "";
    else if (offset > current.text.length && !current.text) current.text = "… ";
    Object.assign(current, { part, parts, text: current.text + text });
    this.#find(".run-written").hidden = !current.text;
    this.#showText();
    this.#tick();
  }

  #tick() {
    if (!this.#run) return;
    const { count, part, parts, startedAt, expectedSeconds } = this.#run;
    const elapsed = Math.max(0, Date.now() - startedAt);
    const texts = [
      count ? getText("summarized", { count }) : "",
      parts > 1 ? getText("runPart", { part, parts }) : "",
      elapsed >= TICK_MS ? formatElapsed(elapsed) : "",
      expectedSeconds >= LONG_SECONDS
        ? getText("expected", { time: formatDuration(1000 * expectedSeconds) })
        : "",
    ];
    this.#find(".run-facts").textContent = texts.filter(Boolean).join(" · ");
  }

  #showText() {
    const words = this.#find(".run-text");
    if (!this.#run || !this.#find("details").open) return;
    words.classList.add("prose");
    getMarkdownView(words).showPartial(this.#run.text);
    words.scrollTop = words.scrollHeight;
  }

  // The run changed the context: say by how much, and offer to look at it and to undo it.
  finish(applied) {
    this.#endedRuns.add(applied.run);
    this.#version = null;
    const words = applied.messages_compacted
      ? getText("runSummarized", { count: applied.messages_compacted })
      : getText("runShortened", { count: applied.targets_count });
    // Whoever chose another model for this summary wants to know that it has written it.
    const writer = applied.summary_model && getText("writtenBy", { model: applied.model });
    this.#end("done", [words, writer].filter(Boolean).join(" · "));
  }

  // Its Undo takes back what this run did, so the line goes when something else was done since.
  follow(version) {
    if (this.element.dataset.state !== "done") return;
    this.#version ??= version;
    if (version !== this.#version) this.hide();
  }

  // Say that a summary failed, or that messages are left out, until the user closes it.
  showFailure({ id, words }) {
    if (this.#run || this.element.dataset.state === "done" || id === this.#closedFailure) return;
    this.#failure = id;
    this.#end("failed", words);
  }

  hideFailure() {
    if (this.element.dataset.state === "failed") this.hide();
  }

  #end(state, words) {
    this.#stop();
    this.element.hidden = false;
    this.element.dataset.state = state;
    this.#find(".run-facts").textContent = "";
    this.#find(".run-words").textContent = words;
  }

  // The run changed nothing, and nobody needs to know why.
  drop(run) {
    this.#endedRuns.add(run);
    if (!this.#run || this.#run.id === run) this.hide();
  }

  hide() {
    this.#stop();
    this.element.hidden = true;
    this.element.dataset.state = "";
    this.#find(".run-words").textContent = "";
  }

  #stop() {
    clearInterval(this.#timer);
    this.#find(".run-event").hidden = true;
    this.#run = null;
    this.#find("details").open = false;
    this.#find(".run-written").hidden = true;
    this.#find(".run-text").classList.remove("prose");
  }

  async #cancel() {
    const { id } = this.#run ?? {};
    if (!id) return;
    try {
      await callApi("POST", `compactions/${id}/cancel`);
      this.drop(id);
    } catch (problem) {
      if (problem.status !== 409) showSnackbar(getText("failed", { why: problem.message }));
    }
  }

  #acts = {
    cancel: () => this.#cancel(),
    view: () => this.chat.cards.openCurrent(),
    undo: () => {
      this.hide();
      return tryToMove(this.chat, "undo");
    },
    again: () => {
      this.hide();
      return this.chat.meter.requestCompaction();
    },
    close: () => {
      if (this.element.dataset.state === "failed") this.#closedFailure = this.#failure;
      this.hide();
    },
  };
}
