// The context meter: how much of its window the model sees filled, and with what.

import { api } from "./api.js";
import { snackbar } from "./snackbar.js";
import { say, shortCount } from "./words.js";

class ContextMeter extends HTMLElement {
  connectedCallback() {
    this.querySelector(".compact").addEventListener("click", () => this.#optimize());
  }

  follow(session) {
    this.session = session;
    return this.refresh();
  }

  async refresh() {
    if (!this.session) return;
    try {
      this.show(await api("GET", `sessions/${this.session}/context`));
    } catch {
      // A meter that cannot be read is no reason to disturb; the next answer brings fresh figures.
    }
  }

  // Before the first message.
  empty(whole) {
    this.show({ estimated_input_tokens: 0, context_window: whole });
  }

  show(usage) {
    const used = usage.estimated_input_tokens;
    const whole = usage.context_window;
    const percent = whole ? Math.round((used / whole) * 100) : null;
    const known = whole ? say("contextKnown", { used: shortCount(used), window: shortCount(whole), percent }) : say("contextUnknown", { used: shortCount(used) });
    this.toggleAttribute("data-unknown", !whole);
    this.dataset.level = usage.level ?? "ok";
    this.querySelector(".meter-used").textContent = whole
      ? `${shortCount(used)} / ${shortCount(whole)} · ${percent} %`
      : `${shortCount(used)} ${say("tokens")}`;
    this.querySelector(".meter-button").setAttribute("aria-label", known);
    this.querySelector(".context-total").textContent = known;
    this.querySelector(".bar-fill").style.width = `${Math.min(percent ?? 0, 100)}%`;
    this.#mark(this.querySelector(".meter-button .bar-mark"), usage);
    this.#parts(usage);
  }

  #mark(mark, { threshold_tokens: threshold, context_window: whole }) {
    mark.hidden = !(whole && threshold);
    if (!mark.hidden) mark.style.insetInlineStart = `${(threshold / whole) * 100}%`;
  }

  #parts(usage) {
    const bar = this.querySelector(".bar.wide");
    const whole = Math.max(usage.context_window ?? 0, usage.estimated_input_tokens, 1);
    bar.replaceChildren();
    for (const row of this.querySelectorAll("[data-part]")) {
      const name = row.dataset.part;
      const tokens = name === "free" ? usage.context_window && Math.max(0, usage.context_window - usage.estimated_input_tokens) : (usage.breakdown?.[name] ?? 0);
      row.hidden = !tokens;
      row.querySelector("dd").textContent = shortCount(tokens ?? 0);
      row.style.setProperty("--part", `var(--part-${name})`);
      if (!tokens || name === "free") continue;
      const part = document.createElement("span");
      part.style.width = `${(tokens / whole) * 100}%`;
      part.style.background = `var(--part-${name})`;
      bar.append(part);
    }
    const mark = document.createElement("span");
    mark.className = "bar-mark";
    this.#mark(mark, usage);
    bar.append(mark);
  }

  // Who asked is told why nothing came of it; a run that began by itself fails quietly.
  refused(reason) {
    if (this.asked) snackbar(say("notOptimized", { why: reason }));
    this.asked = false;
  }

  async #optimize() {
    if (!this.session) return;
    this.querySelector("#context").hidePopover();
    try {
      this.asked = true;
      await api("POST", `sessions/${this.session}/compact`, {});
    } catch (problem) {
      snackbar(say("failed", { why: problem.message }));
    }
  }
}

customElements.define("context-meter", ContextMeter);
