// Choose the model that answers: a button that opens a list with a search field.

import { isInputMethodKey } from "./keyboard.js";

const GAP = 6; // pixels between the list and its button
const MARGIN = 8; // pixels between the list and the edge of the window

class ModelPicker extends HTMLElement {
  connectedCallback() {
    this.button = this.querySelector(".picker-button");
    this.popoverElement = this.querySelector("[popover]");
    this.field = this.querySelector("input");
    this.list = this.querySelector("[role=listbox]");
    this.popoverElement.addEventListener("toggle", (event) => this.#onToggle(event));
    this.field.addEventListener("input", () => this.#filter());
    this.popoverElement.addEventListener("keydown", (event) => this.#onKeyDown(event));
    this.list.addEventListener("click", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option) this.#choose(option);
    });
    this.list.addEventListener("pointermove", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option && option !== this.#activeOption) this.#setActive(option, { scrolls: false });
    });
    addEventListener("resize", () => this.#isOpen && this.#place());
  }

  // The model's name with its provider; empty where none is chosen, or none can be used.
  get value() {
    return this.dataset.value;
  }

  set value(name) {
    const option = this.options.find(({ dataset }) => dataset.value === name);
    if (!option) return;
    this.dataset.value = name;
    this.dataset.window = option.dataset.window;
    this.querySelector(".picker-name").textContent = option.dataset.name;
    for (const other of this.options) other.setAttribute("aria-selected", String(other === option));
  }

  get shownName() {
    return this.querySelector(".picker-name").textContent.trim();
  }

  get contextWindow() {
    return Number(this.dataset.window) || null;
  }

  get options() {
    return [...this.list.querySelectorAll("[role=option]")];
  }

  open() {
    this.popoverElement.showPopover();
  }

  get #isOpen() {
    return this.popoverElement.matches(":popover-open");
  }

  get #shownOptions() {
    return this.options.filter((option) => !option.hidden);
  }

  get #activeOption() {
    return this.list.querySelector("[data-active]");
  }

  #onToggle({ newState }) {
    this.button.setAttribute("aria-expanded", String(newState === "open"));
    if (newState === "open") {
      this.#place();
      this.#showSelected();
    } else {
      this.field.value = "";
      this.#filter();
    }
  }

  // The field has the focus before this event comes, so somebody may have typed already.
  #showSelected() {
    if (this.field.value) return;
    const { options } = this;
    this.#setActive(
      options.find((option) => option.getAttribute("aria-selected") === "true") ?? options[0],
    );
  }

  // The list grows upwards from its button, so that it does not jump while one types.
  #place() {
    const button = this.button.getBoundingClientRect();
    const { style, offsetWidth } = this.popoverElement;
    const isRtl = getComputedStyle(this).direction === "rtl";
    const left = isRtl ? button.right - offsetWidth : button.left;
    style.left = `${Math.max(MARGIN, Math.min(left, innerWidth - offsetWidth - MARGIN))}px`;
    style.bottom = `${innerHeight - button.top + GAP}px`;
    style.maxHeight = `${button.top - GAP - MARGIN}px`;
  }

  // Each word must be in a model's name, its provider's, or what it can do.
  #filter() {
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const group of this.list.querySelectorAll("[role=group]")) {
      const provider = group.getAttribute("aria-label").toLowerCase();
      for (const option of group.querySelectorAll("[role=option]")) {
        const text = `${provider} ${option.textContent.toLowerCase()}`;
        option.hidden = !words.every((word) => text.includes(word));
      }
      group.hidden = !group.querySelector("[role=option]:not([hidden])");
    }
    const [first] = this.#shownOptions;
    this.querySelector(".models-none").hidden = Boolean(first);
    this.#setActive(first);
  }

  #setActive(option, { scrolls = true } = {}) {
    this.#activeOption?.removeAttribute("data-active");
    option?.setAttribute("data-active", "");
    if (scrolls) option?.scrollIntoView({ block: "nearest" });
    if (option) this.field.setAttribute("aria-activedescendant", option.id);
    else this.field.removeAttribute("aria-activedescendant");
  }

  #onKeyDown(event) {
    if (isInputMethodKey(event)) return;
    const options = this.#shownOptions;
    const at = options.indexOf(this.#activeOption);
    const next = {
      ArrowDown: (at + 1) % options.length,
      ArrowUp: (at - 1 + options.length) % options.length,
      Home: 0,
      End: options.length - 1,
    }[event.key];
    if (next === undefined && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key !== "Enter") this.#setActive(options[next]);
    else if (this.#activeOption) this.#choose(this.#activeOption);
  }

  #choose(option) {
    this.popoverElement.hidePopover();
    this.button.focus();
    if (option.dataset.value === this.value) return;
    this.value = option.dataset.value;
    this.dispatchEvent(new Event("choose"));
  }
}

customElements.define("model-picker", ModelPicker);
