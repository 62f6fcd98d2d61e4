// Search titles and messages in a palette, by keyboard or mouse, and open the result.

import { isInputMethodKey } from "./keyboard.js";
import "./local_time.js";
import { addCommands, runCommand } from "./palette_commands.js";
import { showSearchResult } from "./search_highlight.js";

const palette = document.getElementById("palette");
const field = palette.querySelector("[role=combobox]");
const chatFilter = palette.querySelector(".palette-only");
const results = document.getElementById("found");

const getOptions = () => [...results.querySelectorAll("[role=option]")];
const getSelectedOption = () => results.querySelector("[aria-selected=true]");

function openPalette({ inChat = false } = {}) {
  if (document.querySelector("dialog[open]")) return;
  const session = document.querySelector("chat-stream")?.session;
  chatFilter.hidden = !session;
  chatFilter.firstElementChild.value = session ?? "";
  chatFilter.firstElementChild.checked = Boolean(session) && inChat;
  document.getElementById("sidebar").hidePopover();
  palette.showModal();
  field.select();
  repeatSearch();
}

function repeatSearch() {
  // A quick hand opens it before htmx has gone through the page.
  globalThis.htmx.process(field);
  field.dispatchEvent(new Event("again"));
}

function selectOption(option) {
  getSelectedOption()?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
}

function moveSelection(steps) {
  const options = getOptions();
  if (options.length)
    selectOption(
      options[(options.indexOf(getSelectedOption()) + steps + options.length) % options.length],
    );
}

const KEYS = {
  ArrowDown: () => moveSelection(1),
  ArrowUp: () => moveSelection(-1),
  Enter: () => getSelectedOption()?.click(),
};

field.addEventListener("keydown", (event) => {
  if (!(event.key in KEYS) || isInputMethodKey(event)) return;
  event.preventDefault();
  KEYS[event.key]();
});
results.addEventListener("htmx:afterSwap", () => {
  addCommands(document.getElementById("found-list"), field.value);
  selectOption(getOptions()[0]);
});
results.addEventListener("click", ({ target }) => {
  const option = target.closest("[data-command]");
  if (!option) return;
  palette.close();
  runCommand(option.dataset.command);
});
results.addEventListener("pointermove", (event) => {
  const option = event.target.closest("[role=option]");
  if (option && option !== getSelectedOption()) selectOption(option);
});
chatFilter.addEventListener("change", repeatSearch);
// A click outside of the dialog.
palette.addEventListener("click", (event) => event.target === palette && palette.close());

// Show a result in the open chat without leaving the page.
results.addEventListener("click", (event) => {
  const option = event.target.closest("[data-at]");
  const chat = document.querySelector("chat-stream");
  if (!option || event.ctrlKey || event.metaKey || option.dataset.chat !== chat?.session) return;
  event.preventDefault();
  palette.close();
  showSearchResult(chat, option.dataset.at, field.value);
});

document.addEventListener("keydown", (event) => {
  if (
    !(event.ctrlKey || event.metaKey) ||
    event.shiftKey ||
    event.altKey ||
    event.key.toLowerCase() !== "k"
  )
    return;
  event.preventDefault();
  openPalette();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-palette]");
  if (button) openPalette({ inChat: button.dataset.palette === "chat" });
});

const params = new URLSearchParams(location.search);
if (params.has("at")) {
  customElements.whenDefined("chat-stream").then(() => {
    history.replaceState(null, "", location.pathname);
    showSearchResult(
      document.querySelector("chat-stream"),
      params.get("at"),
      params.get("q") ?? "",
    );
  });
}
