// Say in the meter's panel what a summary made now would do: what it takes in, and what it saves.

import { callApi } from "./api.js";
import { chooseFill } from "./formats.js";
import { getText } from "./texts.js";

const PAUSE_MS = 250; // who only passes over the meter asks for nothing

// Return what a run by hand would do; null if it cannot be asked for.
async function tryRun(session, options) {
  try {
    return await callApi("POST", `sessions/${session}/compact`, { ...options, dry_run: true });
  } catch {
    return null; // the button itself tells what is wrong, when it is pressed
  }
}

// Return what a run by hand would do; null if it would do nothing, or cannot be asked for.
export async function previewRun(session) {
  const run = await tryRun(session);
  return run?.status === "applied" && run.messages_compacted > 0 ? run : null;
}

// Return whether a summary up to a message would save nothing.
export async function findsTooLittle(session, seq) {
  const run = await tryRun(session, { up_to_seq: seq });
  return run?.status === "skipped" && run.tokens_before !== null; // else something else forbids it
}

export class RunPreview {
  #timer;
  #question = 0; // an answer to an earlier one comes too late

  constructor(meter) {
    this.meter = meter;
    this.line = meter.querySelector(".context-preview");
    const panel = meter.querySelector("#context");
    panel.addEventListener("toggle", ({ newState }) => {
      clearTimeout(this.#timer);
      if (newState === "open") this.#timer = setTimeout(() => this.#show(), PAUSE_MS);
    });
    this.line.querySelector("button").addEventListener("click", () => panel.hidePopover());
  }

  async #show() {
    const { session } = this.meter;
    if (!session) return;
    const question = ++this.#question;
    const run = await previewRun(session);
    if (question !== this.#question) return;
    this.line.hidden = !run;
    if (!run) return;
    const boundary = run.boundary_after;
    this.line.querySelector("span").textContent = getText("runPreview", {
      count: run.messages_compacted,
      fullness: getText(chooseFill(run.tokens_after / this.meter.contextWindow)),
    });
    const link = this.line.querySelector("button");
    link.hidden = !boundary;
    link.dataset.goesTo = boundary;
  }
}
