// Say in words what a policy does while one chooses it, and move the mark on the meter meanwhile.

import { callApi } from "./api.js";
import { formatCount } from "./formats.js";
import { getText, textKey } from "./texts.js";

export class PolicyWords {
  #policies = new Map(); // name → knobs

  constructor(settings) {
    this.form = settings.querySelector("form");
    this.line = settings.querySelector("[data-policy-words]");
    this.meter = document.querySelector("context-meter");
    const fields = this.form.querySelector("[data-policy-fields]");
    for (const name of ["input", "change"]) fields.addEventListener(name, () => this.#show(true));
    settings.closest("dialog").addEventListener("close", () => this.meter?.showThreshold(null), {
      once: true,
    });
    callApi("GET", "policies")
      .then(({ results }) => {
        for (const { name, knobs } of results) this.#policies.set(name, knobs);
        this.#show(false);
      })
      .catch(() => {}); // without words the names are there still
  }

  #show(movesMark) {
    const { policy, compact_threshold: share, auto_compact: automatic } = this.form.elements;
    const contextWindow = this.meter?.contextWindow;
    const number = Number(share.value.replace(",", "."));
    const own = number > 100 ? number / (contextWindow ?? Infinity) : number / 100;
    const knobs = this.#policies.get(policy.value || policy.dataset.usual);
    if (!knobs) {
      this.line.textContent = "";
      return;
    }
    const threshold = own > 0 && own <= 1 ? own : knobs.trigger.threshold;
    const words = contextWindow ? "policyStartsAt" : "policyStartsAtShare";
    this.line.textContent = [
      automatic.checked
        ? getText(words, {
            percent: Math.round(threshold * 100),
            tokens: formatCount(Math.round(threshold * (contextWindow ?? 0))),
          })
        : getText("automaticOff"),
      getText(textKey("policyKeeps", knobs.protect.kind ?? "token_ratio"), {
        percent: Math.round(knobs.protect.ratio * 100),
        count: knobs.protect.count,
      }),
    ].join(" ");
    if (movesMark && contextWindow)
      this.meter.showThreshold(automatic.checked ? Math.round(threshold * contextWindow) : null);
  }
}
