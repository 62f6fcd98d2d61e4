// What every page has: menus beside their buttons, dialogs, copying, and the keyboard.

import { csrf, leadsToSignIn, signedOut } from "./api.js";
import { copy } from "./copying.js";
import { forgetAll } from "./keeping.js";

const GAP = 6; // pixels between a menu and its button
const MARGIN = 8; // and between it and the window's edge
const MENU = ".menu:not([role])";

let opener = null; // the button pressed last: many may open the same menu
document.addEventListener(
  "click",
  (event) => (opener = event.target.closest("[popovertarget]") ?? opener),
  true,
);

document.addEventListener(
  "toggle",
  (event) => {
    if (!event.target.matches?.("[data-places]")) return;
    if (event.newState === "open") opened(event.target);
    else delete event.target.dataset.placed;
  },
  true,
);

// Who opens a menu by keyboard goes on in it; the browser brings them back to its button.
function opened(menu) {
  place(menu);
  if (menu.matches(MENU) && document.activeElement === opener && opener.matches(":focus-visible"))
    acts(menu)[0]?.focus();
}

const acts = (menu) =>
  [...menu.querySelectorAll("button, a")].filter((act) => act.checkVisibility());

document.addEventListener("keydown", (event) => {
  const menu = document.querySelector(`${MENU}:popover-open`);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !menu || !(event.target === opener || menu.contains(event.target))) return;
  event.preventDefault();
  const all = acts(menu);
  all.at((Math.max(0, all.indexOf(event.target)) + step) % all.length).focus(); // a key may be faster than the menu
});

function place(menu) {
  const opens = `[popovertarget="${menu.id}"]`;
  const button = (
    opener?.matches(opens) ? opener : document.querySelector(opens)
  ).getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = button.bottom + GAP;
  const above = button.top - GAP - height;
  const wantsAbove = menu.dataset.places === "above" || below + height > innerHeight - MARGIN;
  menu.style.top = `${Math.max(MARGIN, wantsAbove ? above : below)}px`;
  menu.style.left = `${Math.min(Math.max(MARGIN, button.right - width), innerWidth - width - MARGIN)}px`;
  menu.dataset.placed = "";
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.opens) document.getElementById(button.dataset.opens).showModal();
  if ("unfold" in button.dataset) unfold(button);
  if ("closesDialog" in button.dataset) button.closest("dialog").close();
  if (button.parentElement?.matches(".menu")) button.parentElement.hidePopover();
  if ("copyCode" in button.dataset)
    copy(button, button.closest("figure").querySelector("code").textContent);
  if ("copyNear" in button.dataset) copy(button, button.previousElementSibling.textContent);
});

function unfold(button) {
  delete button.previousElementSibling.dataset.long;
  button.remove();
}

document.addEventListener(
  "htmx:configRequest",
  ({ detail }) => (detail.headers["X-CSRFToken"] = csrf()),
);

// The page to sign in is no piece of this one. A chat says so and keeps what is being written; any other page goes there.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (!leadsToSignIn(detail.xhr.responseURL)) return;
  detail.shouldSwap = false;
  signedOut();
});
document.addEventListener("signed-out", () => {
  if (!document.querySelector("chat-stream"))
    location.assign(`/login/?${new URLSearchParams({ next: location.pathname })}`);
});
document.addEventListener(
  "submit",
  (event) => event.target.matches("[data-signs-out]") && forgetAll(),
);

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "dialog" && event.target.children.length) event.target.showModal();
  document.querySelector("input[data-select]")?.select();
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful && event.target.matches("[data-closes]"))
    event.target.closest("dialog")?.close();
});
document.addEventListener("htmx:afterSettle", () =>
  document.querySelector("input[data-select]")?.focus(),
);

// A fresh list of chats waits while a menu in it is open, a title is edited or a row is fetched: nothing vanishes under a person's hand.
const chats = document.getElementById("chats");
const inUse = () => chats.querySelector(":popover-open, .editing, .htmx-request");
let late = false;

function catchUp() {
  if (!late || inUse()) return;
  late = false;
  chats.dispatchEvent(new Event("refresh"));
}

chats.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.requestConfig.elt !== chats || !inUse()) return;
  event.detail.shouldSwap = false;
  late = true;
});
chats.addEventListener("htmx:afterRequest", catchUp);
addEventListener(
  "pageshow",
  ({ persisted }) => persisted && chats.dispatchEvent(new Event("refresh")),
); // back to a page as it was left
chats.addEventListener("toggle", catchUp, true);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey && event.shiftKey && event.code === "KeyO") {
    event.preventDefault();
    document.querySelector("[data-shortcut=new]").click();
  }
  if (event.key === "Escape") escape(event);
  // Asked of the page, not of the key's target: a dialog just closed keeps the focus until the next frame.
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
    return;
  if (event.target.closest("input, textarea, select")) return;
  if (event.key === "/") focusComposer(event);
  if (event.key === "?") document.getElementById("help").showModal();
});

// What is innermost is left: the title being edited, a dialog or menu (the browser closes these), the answer being written.
function escape(event) {
  const title = event.target.closest("input[data-select]");
  if (title) title.dispatchEvent(new Event("leave"));
  else if (!event.isComposing && !document.querySelector("dialog[open], :popover-open"))
    document.querySelector("chat-stream")?.stop();
}

function focusComposer(event) {
  const field = document.querySelector(".composer textarea");
  if (!field) return;
  event.preventDefault();
  field.focus();
}
