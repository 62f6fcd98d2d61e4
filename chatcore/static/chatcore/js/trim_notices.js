// Say in one place that a summary failed, and that messages are left out: why, how many, what now.

import { callApi } from "./api.js";
import { getText } from "./texts.js";

const FAILED = ["fell_back", "failed"];

export class TrimNotices {
  #newestLoad = 0;
  #failedRun = ""; // whose failure this page has seen

  constructor(chat) {
    this.chat = chat;
    chat.addEventListener("pagechange", () => this.#collapse());
  }

  // Show what is true of the next request.
  async refresh({ failedRun = this.#failedRun } = {}) {
    this.#failedRun = failedRun;
    this.#collapse();
    const load = ++this.#newestLoad;
    const isTrimmed = this.chat.meter.usage?.next_request === "trimmed";
    const [preview, run] = await Promise.all([
      isTrimmed ? this.#read("context/preview") : null,
      isTrimmed || failedRun ? this.#loadNewestRun() : null,
    ]);
    if (load !== this.#newestLoad) return;
    const leftOut = preview?.left_out ?? [];
    this.chat.timeline.markLeftOut(leftOut);
    this.chat.meter.showSent(leftOut.length ? preview.tokens : null);
    const hasFailed = FAILED.includes(run?.status);
    if (leftOut.length || (hasFailed && failedRun === run.id))
      this.chat.runStatus.showFailure({
        id: hasFailed ? run.id : "",
        words: describe(hasFailed && run, leftOut.length),
      });
    else this.chat.runStatus.hideFailure();
  }

  #collapse() {
    const lines = [...this.chat.timeline.list.querySelectorAll(".notice")];
    for (const line of lines) line.hidden = line !== lines.at(-1);
  }

  #read(path) {
    return callApi("GET", `sessions/${this.chat.session}/${path}`);
  }

  async #loadNewestRun() {
    return (await this.#read("compactions?limit=1")).results[0];
  }
}

// If the model wrote something, that was refused: what was wrong with it helps no user. Else the
// provider's reason does.
function describe(run, count) {
  if (!run) return getText("trimmedNow", { count });
  const failure = run.output_tokens
    ? getText("summaryPoor")
    : getText("summaryMissing", { why: run.reason });
  return `${failure} ${count ? getText("trimmedUntil", { count }) : getText("nothingChanged")}`;
}
