// Complete and run slash commands in the composer, and put prompts of one's own into it. An unknown
// command is sent as text after a warning.

import { callApi } from "./api.js";
import { isInputMethodKey, isSendKey } from "./keyboard.js";
import { buildPath } from "./paths.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const COMMAND = /^\/([\p{L}\p{N}_-]+)(?:\s+([\s\S]*))?$/u;
const NAMES_A_COMMAND = /^\/[\p{L}\p{N}_-]*$/u;
const MAX_SHOWN_CHARACTERS = 80; // of a prompt, in the list of completions
const NAMES_A_MODEL = /^\/model\s+(\S*)$/;

export class SlashCommands {
  #prompts = null; // those of the person, loaded when the first command begins
  #unknownCommand = ""; // the unknown command that the user was warned about

  constructor(chat) {
    this.chat = chat;
    this.field = chat.composer.field;
    this.list = chat.querySelector("#slash");
    this.field.setAttribute("aria-autocomplete", "list");
    this.field.setAttribute("aria-controls", this.list.id);
    this.field.addEventListener("input", () => this.#showCompletions());
    this.field.addEventListener("blur", () => this.#hide());
    // Capture these events before the composer gets them.
    chat.addEventListener(
      "keydown",
      (event) => event.target === this.field && this.#onKeyDown(event),
      { capture: true },
    );
    chat.addEventListener(
      "submit",
      (event) => event.target === chat.composer.form && this.#runCommand() && stopEvent(event),
      { capture: true },
    );
    this.list.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the field keeps the focus
      const option = event.target.closest("[role=option]");
      if (option) this.#chooseOption(option);
    });
  }

  get #selectedOption() {
    return this.list.querySelector("[aria-selected=true]");
  }

  #showCompletions() {
    const text = this.field.value;
    if (text.startsWith("/")) this.#loadPrompts();
    const options = NAMES_A_COMMAND.test(text)
      ? this.#matchCommands(text)
      : NAMES_A_MODEL.test(text)
        ? this.#matchModels(NAMES_A_MODEL.exec(text)[1])
        : [];
    this.list.replaceChildren(...options);
    options.forEach((option, index) => (option.id = `slash-${index}`));
    this.list.hidden = !options.length;
    if (options.length) this.#select(options[0]);
    else this.#hide();
  }

  #matchCommands(text) {
    return this.chat.timeline
      .cloneTemplate("slash-commands")
      .concat(this.#usablePrompts.map((prompt) => this.#createPromptOption(prompt)))
      .filter((option) => option.dataset.value.startsWith(text.toLowerCase()));
  }

  // The list of completions is shown again when the prompts have come.
  async #loadPrompts() {
    if (this.#prompts || !("prompts" in this.list.dataset)) return;
    this.#prompts = [];
    try {
      this.#prompts = (await callApi("GET", "prompts?limit=100")).results;
    } catch (problem) {
      this.#prompts = null; // the next command tries again
      return console.warn(problem);
    }
    if (this.#prompts.length && document.activeElement === this.field) this.#showCompletions();
  }

  // Those of all chats, and those of the project that this chat is in.
  get #usablePrompts() {
    const project = document.getElementById("chat-project").dataset.project;
    return (this.#prompts ?? []).filter((prompt) => [null, project].includes(prompt.project));
  }

  #createPromptOption({ name, text }) {
    const [option] = this.chat.timeline.cloneTemplate("slash-commands");
    delete option.dataset.takes;
    option.dataset.value = `/${name}`;
    option.querySelector(".slash-name").textContent = `/${name}`;
    option.querySelector(".slash-argument").textContent = "";
    option.querySelector(".slash-words").textContent = text.slice(0, MAX_SHOWN_CHARACTERS);
    return option;
  }

  #matchModels(part) {
    const models = this.chat.composer.picker.options.filter(({ dataset }) =>
      dataset.value.toLowerCase().includes(part.toLowerCase()),
    );
    return models.map((model) => {
      const [option] = this.chat.timeline.cloneTemplate("slash-commands");
      option.dataset.value = `/model ${model.dataset.value}`;
      delete option.dataset.takes;
      option.querySelector(".slash-name").textContent = model.dataset.value;
      option.querySelector(".slash-argument").remove();
      const facts = [...model.querySelectorAll(".model-facts > span")];
      option.querySelector(".slash-words").textContent = facts
        .map(({ textContent }) => textContent.trim())
        .join(" · ");
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

  #onKeyDown(event) {
    if (isInputMethodKey(event)) return;
    if (!this.list.hidden && LIST_KEYS[event.key]) LIST_KEYS[event.key](this, event);
    else if (isSendKey(event) && this.#runCommand()) stopEvent(event);
  }

  moveSelection(steps) {
    const options = [...this.list.children];
    this.#select(options.at((options.indexOf(this.#selectedOption) + steps) % options.length));
  }

  runSelected() {
    this.#chooseOption(this.#selectedOption);
  }

  completeSelected() {
    const { value, takes } = this.#selectedOption.dataset;
    this.#setText(takes === undefined ? value : `${value} `);
  }

  close() {
    this.#hide();
  }

  #chooseOption({ dataset }) {
    this.#setText(dataset.value);
    if (dataset.needs === undefined) this.#runCommand();
  }

  #setText(text) {
    this.chat.composer.setText(text);
    this.#showCompletions();
  }

  // Put a prompt into the field; what it leaves open as {{field}} is asked for.
  async #insertPrompt(text, argument) {
    const command = this.field.value;
    this.#setText([text, argument].filter(Boolean).join("\n\n"));
    if (!HAS_FIELDS.test(text)) return;
    const { askFields } = await import("./text_dialogs.js");
    const filled = await askFields(this.chat, text);
    this.#setText(filled === null ? command : [filled, argument].filter(Boolean).join("\n\n"));
  }

  // Run the command in the field. Return false when the text is not a command.
  #runCommand() {
    const text = this.field.value.trim();
    const [, name, argument = ""] = COMMAND.exec(text) ?? [];
    if (!name || text === this.#unknownCommand) return false;
    const prompt = this.#usablePrompts.find((each) => each.name === name.toLowerCase());
    if (prompt && !Object.hasOwn(COMMANDS, name)) {
      this.#insertPrompt(prompt.text, argument);
      return true;
    }
    if (!Object.hasOwn(COMMANDS, name)) {
      this.#unknownCommand = text;
      showSnackbar(getText("noCommand", { name }));
      return true;
    }
    this.#setText("");
    if (!this.chat.session && name !== "model") showSnackbar(getText("nothingYet"));
    else
      Promise.resolve(COMMANDS[name](this.chat, argument.trim())).catch((problem) =>
        showSnackbar(getText("failed", { why: problem.message })),
      );
    return true;
  }
}

const HAS_FIELDS = /\{\{\s*\p{L}[\p{L}\p{N}_ -]*\}\}/u;

const LIST_KEYS = {
  ArrowDown: (slash, event) => stopEvent(event, slash.moveSelection(1)),
  ArrowUp: (slash, event) => stopEvent(event, slash.moveSelection(-1)),
  Enter: (slash, event) => event.shiftKey || stopEvent(event, slash.runSelected()),
  Tab: (slash, event) => event.shiftKey || stopEvent(event, slash.completeSelected()),
  Escape: (slash, event) => stopEvent(event, slash.close()),
};

const COMMANDS = {
  summarize: (chat, focus) => chat.meter.requestCompaction(focus ? { instructions: focus } : {}),
  compact: (chat, focus) => COMMANDS.summarize(chat, focus), // what it was called before
  context: (chat) => chat.openPanel(),
  fork: (chat) => forkChat(chat),
  export: (chat) => download(buildPath(`api/v1/sessions/${chat.session}/export`)),
  model: (chat, name) => chooseModel(chat, name),
};

function stopEvent(event) {
  event.preventDefault();
  event.stopPropagation();
}

async function forkChat(chat) {
  const last = [...chat.timeline.list.querySelectorAll('[data-message]:not([data-message=""])')].at(
    -1,
  );
  if (!last) return showSnackbar(getText("nothingYet"));
  const copy = await callApi("POST", `messages/${last.dataset.message}/fork`);
  location.assign(buildPath(`c/${copy.id}/`));
}

function download(address) {
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  link.click();
}

function chooseModel(chat, name) {
  const { picker } = chat.composer;
  if (!name) return picker.open();
  const option = picker.options.find(({ dataset }) => [dataset.value, dataset.name].includes(name));
  if (!option) return showSnackbar(getText("noModel", { name }));
  chat.composer.model = option.dataset.value;
  return chat.changeModel(option.dataset.value);
}
