// Show how full the context window of the model is, what fills it, and when it is compacted.

import { callApi } from "./api.js";
import { chooseFill, formatNumber, formatShare } from "./formats.js";
import { openOnHover } from "./hover_popover.js";
import { RunPreview } from "./run_preview.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";
import { estimateTokens } from "./token_estimate.js";

class ContextMeter extends HTMLElement {
  #usage = null;
  #sentTokens = null; // of a request from which messages are left out
  #draftTokens = 0; // estimated
  #chosenThreshold = null; // tokens
  #frame = 0;

  connectedCallback() {
    this.querySelector(".compact").addEventListener("click", () => this.requestCompaction());
    this.querySelector(".redo").addEventListener("click", () => {
      this.querySelector("#context").hidePopover();
      this.dispatchEvent(new Event("redo"));
    });
    new RunPreview(this);
    openOnHover(this, this.querySelector(".meter-button"), this.querySelector("#context"));
  }

  async refresh() {
    if (!this.session) return;
    try {
      this.showUsage(await callApi("GET", `sessions/${this.session}/context`));
    } catch {
      // An error here is not worth a message; the next answer brings new numbers.
    }
  }

  get usage() {
    return this.#usage;
  }

  get contextWindow() {
    return this.#usage?.context_window ?? null;
  }

  // Move the marks to a threshold that is only being chosen; null moves them back.
  showThreshold(tokens) {
    this.#chosenThreshold = tokens;
    if (this.#usage) this.#renderMarks(this.#usage);
  }

  // Show the meter of a chat without messages, if a model is chosen that could read them.
  showEmpty({ model, contextWindow }) {
    this.showUsage({ estimated_input_tokens: 0, context_window: contextWindow });
    this.hidden = !model;
  }

  showUsage(usage) {
    this.#usage = usage;
    this.hidden = false;
    this.#render();
  }

  // Show the size of what is sent while messages are left out of it; null where none is.
  showSent(tokens) {
    if (this.#sentTokens === tokens) return;
    this.#sentTokens = tokens;
    if (this.#usage) this.#render();
  }

  // Add the text being typed. Draw at most once a frame.
  showDraft(text) {
    this.#draftTokens = text.trim() && !text.startsWith("/") ? estimateTokens(text) : 0;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#usage) this.#render();
    });
  }

  get #contextTokens() {
    return this.#sentTokens ?? this.#usage.estimated_input_tokens;
  }

  // The whole chat does not fit.
  get #isTooLong() {
    const { estimated_input_tokens: tokens, available_input_tokens: room } = this.#usage;
    return tokens > (room ?? Infinity);
  }

  // What is lost is red; what a summary takes in is amber, also if only the draft makes it needed.
  get #level() {
    const { next_request: next, automatic, should_compact, threshold_tokens } = this.#usage;
    const isLost = this.#isTooLong && next !== "summarized";
    if (this.#sentTokens !== null || next === "trimmed" || isLost) return "lost";
    const tokens = this.#contextTokens + this.#draftTokens;
    const isFilled = automatic === "on" && tokens > (threshold_tokens || Infinity);
    return should_compact || isFilled ? "summarized" : "ok";
  }

  #render() {
    const usage = this.#usage;
    const usedTokens = this.#contextTokens + this.#draftTokens;
    const contextWindow = usage.context_window;
    const fullness = contextWindow && getText(chooseFill(usedTokens / contextWindow));
    const used = formatNumber(usedTokens);
    this.toggleAttribute("data-unknown", !contextWindow);
    this.dataset.level = this.#level;
    this.dataset.percent = contextWindow ? Math.round((usedTokens / contextWindow) * 100) : "";
    const label = fullness || `${used} ${getText("tokens", { count: usedTokens })}`;
    const button = this.querySelector(".meter-button");
    // The accessible name contains the visible text, for users who speak commands.
    button.setAttribute("aria-label", `${button.title}: ${label}`);
    this.querySelector(".meter-used").textContent = label;
    this.querySelector(".context-total").textContent = contextWindow
      ? getText("contextKnown", { used, window: formatNumber(contextWindow), fullness })
      : getText("contextUnknown", { used });
    const whole = this.querySelector(".context-whole");
    whole.hidden = this.#sentTokens === null;
    whole.textContent = getText("contextWhole", {
      used: formatNumber(usage.estimated_input_tokens),
    });
    this.#setBarWidth(".meter-button .bar-fill", this.#contextTokens);
    this.#setBarWidth(".meter-button .bar-draft", this.#draftTokens);
    this.#renderMarks(usage);
    this.#renderParts(usage);
    this.#renderNotes(usage);
  }

  #setBarWidth(selector, tokens) {
    this.querySelector(selector).style.width =
      `${Math.min(100, (tokens / (this.#usage.context_window || Infinity)) * 100)}%`;
  }

  #renderMarks({ threshold_tokens: stored, context_window: contextWindow }) {
    const threshold = this.#chosenThreshold ?? stored;
    const percent = contextWindow && threshold && (threshold / contextWindow) * 100;
    for (const mark of this.querySelectorAll(".bar-mark")) {
      mark.hidden = !percent;
      mark.style.insetInlineStart = `${percent}%`;
    }
    const line = this.querySelector(".summarizes-at");
    line.hidden = !percent;
    line.textContent = getText("summarizesAt", { percent: Math.round(percent) });
  }

  #renderParts(usage) {
    const bar = this.querySelector(".bar-parts");
    const usedTokens = this.#contextTokens + this.#draftTokens;
    const contextWindow = Math.max(usage.context_window ?? 0, usedTokens, 1);
    const { conversation_history: history = 0 } = usage.breakdown ?? {};
    const sizes = {
      ...usage.breakdown,
      conversation_history: history - (usage.estimated_input_tokens - this.#contextTokens),
      draft: this.#draftTokens,
      free: usage.context_window ? Math.max(0, usage.context_window - usedTokens) : 0,
    };
    bar.replaceChildren();
    for (const row of this.querySelectorAll("[data-part]")) {
      const name = row.dataset.part;
      const tokens = sizes[name] ?? 0;
      row.hidden = !tokens;
      row.querySelector("dd").textContent = usage.context_window
        ? formatShare(tokens / contextWindow)
        : formatNumber(tokens);
      row.style.setProperty("--part", `var(--part-${name})`);
      if (!tokens || name === "free") continue;
      const part = document.createElement("span");
      part.style.width = `${(tokens / contextWindow) * 100}%`;
      part.style.background = `var(--part-${name})`;
      bar.append(part);
    }
  }

  #renderNotes(usage) {
    const notice = this.querySelector(".context-soon");
    const isUnknown = usage.policy && !usage.context_window;
    const isHeld = usage.next_request === "trimmed" || !usage.should_compact;
    this.querySelector(".window-link").hidden = !isUnknown;
    const pauseReason = isUnknown
      ? "windowUnknown"
      : {
          off: "automaticOff",
          on: usage.next_request === "trimmed" ? "automaticAgain" : undefined,
          waiting: isHeld ? "automaticWaiting" : undefined,
          stopped: "automaticStopped",
        }[usage.automatic];
    notice.hidden = !usage.should_compact && !pauseReason;
    notice.dataset.held = pauseReason ?? "";
    if (!notice.hidden)
      notice.textContent = getText(
        pauseReason ?? (usage.next_request === "summarized" ? "compactsFirst" : "compactsSoon"),
      );
    this.querySelector(".window-learned").hidden = usage.window_source !== "learned";
  }

  // Offer to redo what was undone last.
  offerRedo(isPossible) {
    this.querySelector(".redo").hidden = !isPossible;
  }

  // Tell the reason only to a user who asked for the run. An automatic run fails silently.
  reportRefusal(reason) {
    if (this.isRequested) showSnackbar(getText("notOptimized", { why: reason }));
    this.isRequested = false;
  }

  // Request a compaction run. Options: instructions, up_to_seq.
  async requestCompaction(options = {}) {
    if (!this.session) return;
    this.querySelector("#context").hidePopover();
    try {
      this.isRequested = true;
      await callApi("POST", `sessions/${this.session}/compact`, options);
    } catch (problem) {
      showSnackbar(getText("failed", { why: problem.message }));
    }
  }
}

customElements.define("context-meter", ContextMeter);
