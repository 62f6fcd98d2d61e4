// The settings of a chat: saved over REST, and what cannot be is said beside its field.

import { api } from "./api.js";
import { snackbar } from "./snackbar.js";
import { say } from "./words.js";

class ChatSettings extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.params = JSON.parse(this.dataset.params);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
  }

  async #save() {
    const wrong = this.querySelectorAll("[aria-invalid]");
    for (const field of wrong) field.removeAttribute("aria-invalid");
    for (const line of this.querySelectorAll(".field > .field-error")) line.remove();
    this.querySelector("[data-of-all]").hidden = true;
    const button = this.form.querySelector(".primary");
    button.disabled = true;
    try {
      await this.#store(this.#values());
      this.closest("dialog").close();
      snackbar(say("saved"));
    } catch (problem) {
      this.#refused(problem);
    } finally {
      button.disabled = false;
    }
  }

  // A chat that is not stored yet begins with these.
  async #store(values) {
    if (this.dataset.session) await api("PATCH", `sessions/${this.dataset.session}`, values);
    else await document.querySelector("chat-stream").begin(values);
  }

  #values() {
    const given = (name) => this.form.elements[name].value.trim();
    const params = { ...this.params };
    for (const name of ["temperature", "max_tokens"]) {
      const value = given(`params.${name}`);
      if (value) params[name] = numberOr(value);
      else delete params[name];
    }
    const share = numberOr(given("compact_threshold"));
    const values = {
      system_prompt: this.form.elements.system_prompt.value,
      params,
      auto_compact: this.form.elements.auto_compact.checked,
      policy: given("policy"),
      compact_threshold:
        share === "" ? null : typeof share === "number" ? Math.round(share * 100) / 10_000 : share,
    };
    return given("model") ? { model: given("model"), ...values } : values;
  }

  #refused(problem) {
    const rest = problem.errors.filter(({ field, detail }) => !this.#mark(field, detail));
    const line = this.querySelector("[data-of-all]");
    line.hidden = problem.errors.length > 0 && rest.length === 0;
    line.textContent = rest.map(({ detail }) => detail).join(" ") || problem.message;
    this.querySelector("[aria-invalid]")?.focus();
  }

  #mark(name, detail) {
    const field = this.form.elements[name];
    const place = field?.closest?.(".field");
    if (!place) return false;
    const line = document.createElement("span");
    line.className = "field-error";
    line.id = `${field.id}-error`;
    line.textContent = detail;
    place.append(line);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", line.id);
    return true;
  }
}

// A number, also with a decimal comma; what is none goes out as it is, and the server says so.
function numberOr(text) {
  const number = Number(text.replace(",", "."));
  return text === "" || Number.isNaN(number) ? text : number;
}

// The button asks for the chat on the page, which may have been stored only now.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  const session = document.querySelector("chat-stream")?.session;
  if (session && detail.elt.matches("[data-chat-settings]"))
    detail.path = `/c/${session}/settings/`;
});

customElements.define("chat-settings", ChatSettings);
