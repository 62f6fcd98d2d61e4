// Slash commands in the composer: a list that completes them, and what each does. What is no command is sent as it is, after a word about it.

import { api } from "./api.js";
import { snackbar } from "./snackbar.js";
import { say } from "./words.js";

const COMMAND = /^\/([a-z]+)(?:\s+([\s\S]*))?$/;
const NAMES_A_COMMAND = /^\/[a-z]*$/;
const NAMES_A_MODEL = /^\/model\s+(\S*)$/;

export class Slash {
  #sentAnyway = ""; // an unknown command that the user was told of

  constructor(chat) {
    this.chat = chat;
    this.field = chat.composer.field;
    this.list = chat.querySelector("#slash");
    this.field.setAttribute("aria-autocomplete", "list");
    this.field.setAttribute("aria-controls", this.list.id);
    this.field.addEventListener("input", () => this.#complete());
    this.field.addEventListener("blur", () => this.#hide());
    // Before the composer hears of it.
    chat.addEventListener(
      "keydown",
      (event) => event.target === this.field && this.#keyDown(event),
      { capture: true },
    );
    chat.addEventListener(
      "submit",
      (event) => event.target === chat.composer.form && this.#taken() && stop(event),
      { capture: true },
    );
    this.list.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the field keeps the focus
      const option = event.target.closest("[role=option]");
      if (option) this.#choose(option);
    });
  }

  get #chosen() {
    return this.list.querySelector("[aria-selected=true]");
  }

  #complete() {
    const text = this.field.value;
    const options = NAMES_A_COMMAND.test(text)
      ? this.#commands(text)
      : NAMES_A_MODEL.test(text)
        ? this.#models(NAMES_A_MODEL.exec(text)[1])
        : [];
    this.list.replaceChildren(...options);
    options.forEach((option, index) => (option.id = `slash-${index}`));
    this.list.hidden = !options.length;
    if (options.length) this.#select(options[0]);
    else this.#hide();
  }

  #commands(text) {
    return this.chat.timeline
      .stamp("slash-commands")
      .filter((option) => option.dataset.value.startsWith(text));
  }

  #models(part) {
    const models = [...this.chat.composer.picker.options].filter(
      ({ value }) => value && value.toLowerCase().includes(part.toLowerCase()),
    );
    return models.map(({ value, label, dataset }) => {
      const [option] = this.chat.timeline.stamp("slash-commands");
      option.dataset.value = `/model ${value}`;
      delete option.dataset.takes;
      option.querySelector(".slash-name").textContent = value;
      option.querySelector(".slash-argument").remove();
      option.querySelector(".slash-words").textContent = label
        .slice(dataset.name.length)
        .replace(" · ", ""); // its window and prices
      return option;
    });
  }

  #select(option) {
    for (const other of this.list.children)
      other.setAttribute("aria-selected", String(other === option));
    this.field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  #hide() {
    this.list.hidden = true;
    this.field.removeAttribute("aria-activedescendant");
  }

  #keyDown(event) {
    if (event.isComposing) return;
    if (!this.list.hidden && LISTED[event.key]) LISTED[event.key](this, event);
    else if (event.key === "Enter" && !event.shiftKey && this.#taken()) stop(event);
  }

  move(steps) {
    const options = [...this.list.children];
    this.#select(options.at((options.indexOf(this.#chosen) + steps) % options.length));
  }

  enter() {
    this.#choose(this.#chosen);
  }

  tab() {
    const { value, takes } = this.#chosen.dataset;
    this.#write(takes === undefined ? value : `${value} `);
  }

  leave() {
    this.#hide();
  }

  #choose({ dataset }) {
    this.#write(dataset.value);
    if (dataset.needs === undefined) this.#taken();
  }

  #write(text) {
    this.chat.composer.write(text);
    this.#complete();
  }

  // Whether the text was a command, and is dealt with.
  #taken() {
    const text = this.field.value.trim();
    const [, name, argument = ""] = COMMAND.exec(text) ?? [];
    if (!name || text === this.#sentAnyway) return false;
    if (!Object.hasOwn(COMMANDS, name)) {
      this.#sentAnyway = text;
      snackbar(say("noCommand", { name }));
      return true;
    }
    this.#write("");
    if (!this.chat.session && name !== "model") snackbar(say("nothingYet"));
    else
      Promise.resolve(COMMANDS[name](this.chat, argument.trim())).catch((problem) =>
        snackbar(say("failed", { why: problem.message })),
      );
    return true;
  }
}

const LISTED = {
  ArrowDown: (slash, event) => stop(event, slash.move(1)),
  ArrowUp: (slash, event) => stop(event, slash.move(-1)),
  Enter: (slash, event) => event.shiftKey || stop(event, slash.enter()),
  Tab: (slash, event) => event.shiftKey || stop(event, slash.tab()),
  Escape: (slash, event) => stop(event, slash.leave()),
};

const COMMANDS = {
  compact: (chat, focus) => chat.meter.optimize(focus ? { instructions: focus } : {}),
  context: (chat) => chat.panel.open(),
  fork: (chat) => fork(chat),
  export: (chat) => save(`/api/v1/sessions/${chat.session}/export`),
  model: (chat, name) => choose(chat, name),
};

function stop(event) {
  event.preventDefault();
  event.stopPropagation();
}

async function fork(chat) {
  const last = [...chat.timeline.list.querySelectorAll('[data-message]:not([data-message=""])')].at(
    -1,
  );
  if (!last) return snackbar(say("nothingYet"));
  const made = await api("POST", `messages/${last.dataset.message}/fork`);
  location.assign(`/c/${made.id}/`);
}

function save(address) {
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  link.click();
}

function choose(chat, name) {
  const { picker } = chat.composer;
  const found = [...picker.options].find(
    ({ value, dataset }) => value && [value, dataset.name].includes(name),
  );
  if (!name) return picker.showPicker?.();
  if (!found) return snackbar(say("noModel", { name }));
  chat.composer.model = found.value;
  return chat.changeModel(found.value);
}
