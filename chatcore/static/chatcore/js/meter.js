// The context meter: how much of its window the model sees filled, with what, and what happens when it is full.

import { api } from "./api.js";
import { estimate } from "./estimate.js";
import { shownOnHover } from "./hover.js";
import { snackbar } from "./snackbar.js";
import { say, shortCount } from "./words.js";

const WARNING_RATIO = 0.8; // of the threshold, as the server's level has it

class ContextMeter extends HTMLElement {
  #usage = null;
  #draft = 0; // tokens, estimated
  #frame = 0;

  connectedCallback() {
    this.querySelector(".compact").addEventListener("click", () => this.optimize());
    shownOnHover(this, this.querySelector(".meter-button"), this.querySelector("#context"));
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
    this.#usage = usage;
    this.#draw();
  }

  // What is being typed counts as well; drawn at most once a frame.
  draft(text) {
    this.#draft = text.trim() && !text.startsWith("/") ? estimate(text) : 0;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#usage) this.#draw();
    });
  }

  #draw() {
    const usage = this.#usage;
    const used = usage.estimated_input_tokens + this.#draft;
    const whole = usage.context_window;
    const percent = whole ? Math.round((used / whole) * 100) : null;
    const known = whole
      ? say("contextKnown", { used: shortCount(used), window: shortCount(whole), percent })
      : say("contextUnknown", { used: shortCount(used) });
    this.toggleAttribute("data-unknown", !whole);
    this.dataset.level = usage.level ?? "ok";
    const shown = whole
      ? `${shortCount(used)} / ${shortCount(whole)} · ${percent} %`
      : `${shortCount(used)} ${say("tokens")}`;
    const button = this.querySelector(".meter-button");
    button.setAttribute("aria-label", `${button.title}: ${shown}`); // what is seen is part of the name, for who speaks to the page
    this.querySelector(".meter-used").textContent = shown;
    this.querySelector(".context-total").textContent = known;
    this.#fill(".meter-button .bar-fill", usage.estimated_input_tokens);
    this.#fill(".meter-button .bar-draft", this.#draft);
    this.#marks(usage);
    this.#parts(usage);
    this.#notes(usage);
  }

  #fill(selector, tokens) {
    this.querySelector(selector).style.width =
      `${Math.min(100, (tokens / (this.#usage.context_window || Infinity)) * 100)}%`;
  }

  #marks({ threshold_tokens: threshold, context_window: whole }) {
    const at = {
      threshold,
      warning: threshold && Math.round(threshold * WARNING_RATIO),
      window: whole,
    };
    for (const mark of this.querySelectorAll("[data-mark]")) {
      mark.hidden = !(whole && threshold);
      if (!mark.hidden) mark.style.insetInlineStart = `${(at[mark.dataset.mark] / whole) * 100}%`;
    }
    for (const line of this.querySelectorAll("[data-at]")) {
      line.hidden = !at[line.dataset.at];
      line.querySelector("dd").textContent = shortCount(at[line.dataset.at] ?? 0);
    }
  }

  #parts(usage) {
    const bar = this.querySelector(".bar-parts");
    const used = usage.estimated_input_tokens + this.#draft;
    const whole = Math.max(usage.context_window ?? 0, used, 1);
    const sizes = {
      ...usage.breakdown,
      draft: this.#draft,
      free: usage.context_window ? Math.max(0, usage.context_window - used) : 0,
    };
    bar.replaceChildren();
    for (const row of this.querySelectorAll("[data-part]")) {
      const name = row.dataset.part;
      const tokens = sizes[name] ?? 0;
      row.hidden = !tokens;
      row.querySelector("dd").textContent = shortCount(tokens);
      row.style.setProperty("--part", `var(--part-${name})`);
      if (!tokens || name === "free") continue;
      const part = document.createElement("span");
      part.style.width = `${(tokens / whole) * 100}%`;
      part.style.background = `var(--part-${name})`;
      bar.append(part);
    }
  }

  #notes(usage) {
    const soon = this.querySelector(".context-soon");
    const held = { off: "automaticOff", waiting: "automaticWaiting", stopped: "automaticStopped" }[
      usage.automatic
    ];
    soon.hidden = !usage.should_compact && !held;
    soon.dataset.held = held ?? "";
    if (!soon.hidden) soon.textContent = say(held ?? "compactsSoon");
    this.querySelector(".context-note").hidden = !usage.source;
    this.querySelector(".context-source").textContent = usage.source
      ? say(usage.source === "provider" ? "countedByProvider" : "countedByUs")
      : "";
    this.querySelector(".context-policy").textContent = usage.policy
      ? say("policy", { name: usage.policy })
      : "";
  }

  // Who asked is told why nothing came of it; a run that began by itself fails quietly.
  refused(reason) {
    if (this.asked) snackbar(say("notOptimized", { why: reason }));
    this.asked = false;
  }

  // Ask for a run by hand; `wishes`: instructions, up_to_seq.
  async optimize(wishes = {}) {
    if (!this.session) return;
    this.querySelector("#context").hidePopover();
    try {
      this.asked = true;
      await api("POST", `sessions/${this.session}/compact`, wishes);
    } catch (problem) {
      snackbar(say("failed", { why: problem.message }));
    }
  }
}

customElements.define("context-meter", ContextMeter);
