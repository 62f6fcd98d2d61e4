// Save the settings of a chat over the REST API, and show each problem next to its field.

import { callApi } from "./api.js";
import { buildPath } from "./paths.js";
import { PolicyWords } from "./policy_words.js";
import { showSnackbar } from "./snackbar.js";
import { addTexts, getText } from "./texts.js";

let section = ""; // of the dialog, for which it was opened

class ChatSettings extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.params = JSON.parse(this.dataset.params);
    addTexts(this.querySelector("[data-texts]"));
    new PolicyWords(this);
    if (section === "tools") this.#showTools();
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
  }

  // They were asked for alone, so nothing else is shown.
  #showTools() {
    this.dataset.section = section;
    const tools = this.querySelector("[data-tools]");
    this.closest("dialog").querySelector("h2").textContent = tools.dataset.title;
    for (const group of tools.querySelectorAll("details")) group.open = true;
    tools.querySelector("input")?.focus();
  }

  async #save() {
    const invalid = this.querySelectorAll("[aria-invalid]");
    for (const field of invalid) field.removeAttribute("aria-invalid");
    for (const line of this.querySelectorAll(".field > .field-error")) line.remove();
    this.querySelector("[data-of-all]").hidden = true;
    const button = this.form.querySelector(".primary");
    button.disabled = true;
    try {
      await this.#saveValues(this.#readValues());
      this.closest("dialog").close();
      showSnackbar(getText("saved"));
    } catch (problem) {
      this.#showProblem(problem);
    } finally {
      button.disabled = false;
    }
  }

  // A new chat is stored with these settings.
  async #saveValues(values) {
    if (this.dataset.session) await callApi("PATCH", `sessions/${this.dataset.session}`, values);
    else await document.querySelector("chat-stream").createSession(values);
  }

  #readValues() {
    const getValue = (name) => this.form.elements[name].value.trim();
    const params = { ...this.params };
    for (const name of ["temperature", "max_tokens"]) {
      const value = getValue(`params.${name}`);
      if (value) params[name] = parseNumber(value);
      else delete params[name];
    }
    const threshold = parseNumber(getValue("compact_threshold"));
    // Up to 100 in percent of the window, above that in tokens.
    const isShare = typeof threshold === "number" && threshold <= 100;
    const values = {
      system_prompt: this.form.elements.system_prompt.value,
      params,
      auto_compact: this.form.elements.auto_compact.checked,
      policy: getValue("policy"),
      tools: this.#readTools(),
      compact_threshold:
        threshold === "" ? null : isShare ? Math.round(threshold * 100) / 10_000 : threshold,
    };
    return getValue("model") ? { model: getValue("model"), ...values } : values;
  }

  // All built-in tools and no other are null, so that the chat gets new ones too.
  #readTools() {
    const boxes = [...this.querySelectorAll("[name=tools]")];
    const isUsual = boxes.every((box) => box.checked === "builtIn" in box.dataset);
    return isUsual ? null : boxes.filter((box) => box.checked).map((box) => box.value);
  }

  #showProblem(problem) {
    const rest = problem.errors.filter(({ field, detail }) => !this.#markField(field, detail));
    const line = this.querySelector("[data-of-all]");
    line.hidden = problem.errors.length > 0 && rest.length === 0;
    line.textContent = rest.map(({ detail }) => detail).join(" ") || problem.message;
    this.querySelector("[aria-invalid]")?.focus();
  }

  #markField(name, detail) {
    const field = this.form.elements[name];
    const container = field?.closest?.(".field");
    if (!container) return false;
    const line = document.createElement("span");
    line.className = "field-error";
    field.closest("details")?.setAttribute("open", "");
    line.id = `${field.id}-error`;
    line.textContent = detail;
    container.append(line);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", line.id);
    return true;
  }
}

// Parse a number, also with a decimal comma. Return any other text as it is; the server rejects it.
function parseNumber(text) {
  const number = Number(text.replace(",", "."));
  return text === "" || Number.isNaN(number) ? text : number;
}

// The chat may have been stored after the page was rendered, so its address is set here.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (!detail.elt.matches("[data-chat-settings]")) return;
  section = detail.elt.dataset.chatSettings;
  const session = document.querySelector("chat-stream")?.session;
  if (session) detail.path = buildPath(`c/${session}/settings/`);
});

customElements.define("chat-settings", ChatSettings);
