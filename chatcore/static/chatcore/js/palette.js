// The search palette: words in, chats and messages out, chosen by keyboard or pointer; and the way to a message that was found.

import { reveal } from "./found.js";

const palette = document.getElementById("palette");
const field = palette.querySelector("[role=combobox]");
const only = palette.querySelector(".palette-only");
const found = document.getElementById("found");

const options = () => [...found.querySelectorAll("[role=option]")];
const chosen = () => found.querySelector("[aria-selected=true]");

function open({ inChat = false } = {}) {
  if (document.querySelector("dialog[open]")) return;
  const session = document.querySelector("chat-stream")?.session;
  only.hidden = !session;
  only.firstElementChild.value = session ?? "";
  only.firstElementChild.checked = Boolean(session) && inChat;
  document.getElementById("sidebar").hidePopover();
  palette.showModal();
  field.select();
  again();
}

function again() {
  field.dispatchEvent(new Event("again"));
}

function choose(option) {
  chosen()?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
}

function step(by) {
  const all = options();
  if (all.length) choose(all[(all.indexOf(chosen()) + by + all.length) % all.length]);
}

const KEYS = { ArrowDown: () => step(1), ArrowUp: () => step(-1), Enter: () => chosen()?.click() };

field.addEventListener("keydown", (event) => {
  if (!(event.key in KEYS) || event.isComposing) return;
  event.preventDefault();
  KEYS[event.key]();
});
found.addEventListener("htmx:afterSwap", () => choose(options()[0]));
found.addEventListener("pointermove", (event) => {
  const option = event.target.closest("[role=option]");
  if (option && option !== chosen()) choose(option);
});
only.addEventListener("change", again);
palette.addEventListener("click", (event) => event.target === palette && palette.close()); // beside it

// What is in the open chat is shown without leaving the page.
found.addEventListener("click", (event) => {
  const option = event.target.closest("[data-at]");
  const chat = document.querySelector("chat-stream");
  if (!option || event.ctrlKey || event.metaKey || option.dataset.chat !== chat?.session) return;
  event.preventDefault();
  palette.close();
  reveal(chat, option.dataset.at, field.value);
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
  open();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-palette]");
  if (button) open({ inChat: button.dataset.palette === "chat" });
});

const asked = new URLSearchParams(location.search);
if (asked.has("at")) {
  customElements.whenDefined("chat-stream").then(() => {
    history.replaceState(null, "", location.pathname);
    reveal(document.querySelector("chat-stream"), asked.get("at"), asked.get("q") ?? "");
  });
}
