// Handle what every page has: menus, dialogs, copy buttons and keyboard shortcuts.

import { getCsrfToken, isSignInUrl, reportSignedOut } from "./api.js";
import { removeAllItems } from "./browser_storage.js";
import { copyText } from "./clipboard.js";
import { isInputMethodKey } from "./keyboard.js";
import { buildPath } from "./paths.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const GAP = 6; // pixels between a menu and its button
const MARGIN = 8; // pixels between a menu and the edge of the window
const MENU = ".menu:not([role])";

let opener = null; // the last pressed button; several buttons open the same menu
document.addEventListener(
  "click",
  (event) => (opener = event.target.closest("[popovertarget]") ?? opener),
  true,
);

document.addEventListener(
  "toggle",
  (event) => {
    if (!event.target.matches?.("[data-places]")) return;
    if (event.newState === "open") onMenuOpen(event.target);
    else delete event.target.dataset.placed;
  },
  true,
);

// A menu that was opened by keyboard takes the focus. The browser gives it back to the button.
function onMenuOpen(menu) {
  placeMenu(menu);
  if (menu.matches(MENU) && document.activeElement === opener && opener.matches(":focus-visible"))
    getMenuItems(menu)[0]?.focus();
}

const getMenuItems = (menu) =>
  [...menu.querySelectorAll("button, summary, a")].filter((item) => item.checkVisibility());

document.addEventListener("keydown", (event) => {
  const menu = document.querySelector(`${MENU}:popover-open`);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !menu || !(event.target === opener || menu.contains(event.target))) return;
  event.preventDefault();
  const items = getMenuItems(menu);
  // The key may come before the menu has the focus.
  items.at((Math.max(0, items.indexOf(event.target)) + step) % items.length).focus();
});

function placeMenu(menu) {
  const opens = `[popovertarget="${menu.id}"]`;
  const button = (
    opener?.matches(opens) ? opener : document.querySelector(opens)
  ).getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = button.bottom + GAP;
  const above = button.top - GAP - height;
  const wantsAbove = menu.dataset.places === "above" || below + height > innerHeight - MARGIN;
  // A menu that grows afterwards grows away from its button, so that nothing in it moves from under
  // the hand.
  const isHeldBelow = wantsAbove && above >= MARGIN;
  menu.style.top = isHeldBelow ? "auto" : `${Math.max(MARGIN, wantsAbove ? above : below)}px`;
  menu.style.bottom = isHeldBelow ? `${innerHeight - button.top + GAP}px` : "auto";
  const isStart = "fromStart" in menu.dataset; // it begins where the line of its button begins
  const line = isStart ? menu.parentElement.getBoundingClientRect() : button;
  const isRight = isStart ? getComputedStyle(menu).direction === "rtl" : true;
  const left = Math.max(MARGIN, isRight ? line.right - width : line.left);
  menu.style.left = `${Math.min(left, innerWidth - width - MARGIN)}px`;
  menu.dataset.placed = "";
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.opens) document.getElementById(button.dataset.opens).showModal();
  if ("unfold" in button.dataset) showFullText(button);
  if ("closesDialog" in button.dataset) button.closest("dialog").close();
  if (button.parentElement?.matches(".menu")) button.parentElement.hidePopover();
  if ("copyCode" in button.dataset)
    copyText(button, button.closest("figure").querySelector("code").textContent);
  if ("copyNear" in button.dataset) copyText(button, button.previousElementSibling.textContent);
});

// Some browsers lay the keyboard of a phone over the page: it then ends above the keyboard.
visualViewport?.addEventListener("resize", () => {
  if (visualViewport.scale !== 1) return; // somebody looks closer
  document.body.style.setProperty("--visible-height", `${visualViewport.height}px`);
  scrollTo(0, 0);
});

document.addEventListener("not-copied", () => showSnackbar(getText("notCopied")));

function showFullText(button) {
  delete button.previousElementSibling.dataset.long;
  button.remove();
}

document.addEventListener(
  "htmx:configRequest",
  ({ detail }) => (detail.headers["X-CSRFToken"] = getCsrfToken()),
);

// The sign-in page must not be swapped into this page. A chat shows a message and keeps the draft;
// any other page goes to the sign-in page.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (!isSignInUrl(detail.xhr.responseURL)) return;
  detail.shouldSwap = false;
  reportSignedOut();
});
document.addEventListener("signed-out", () => {
  if (!document.querySelector("chat-stream"))
    location.assign(buildPath(`login/?${new URLSearchParams({ next: location.pathname })}`));
});
// The server answers htmx with one sentence when it is overloaded or its database is away.
document.addEventListener("htmx:responseError", ({ detail }) => {
  if (detail.xhr.getResponseHeader("Content-Type")?.startsWith("text/plain"))
    showSnackbar(detail.xhr.responseText);
});
document.addEventListener(
  "submit",
  (event) => event.target.matches("[data-signs-out]") && removeAllItems(),
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

// Do not replace the list of chats while a menu in it is open, a title is edited or a row is
// loaded.
const chats = document.getElementById("chats");
const isListInUse = () => chats.querySelector(":popover-open, .editing, .htmx-request");
let isRefreshPending = false;

function refreshIfPending() {
  if (!isRefreshPending || isListInUse()) return;
  isRefreshPending = false;
  chats.dispatchEvent(new Event("refresh"));
}

chats.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.requestConfig.elt !== chats || !isListInUse()) return;
  event.detail.shouldSwap = false;
  isRefreshPending = true;
});
chats.addEventListener("htmx:afterRequest", refreshIfPending);
addEventListener(
  "pageshow",
  ({ persisted }) => persisted && chats.dispatchEvent(new Event("refresh")),
); // the browser shows the page as it was left
chats.addEventListener("toggle", refreshIfPending, true);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey && event.shiftKey && event.code === "KeyO") {
    event.preventDefault();
    document.querySelector("[data-shortcut=new]").click();
  }
  if (event.key === "Escape" && !isInputMethodKey(event)) onEscape(event);
  // Ask the page, not the target of the key: a dialog that was just closed keeps the focus until
  // the next frame.
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
    return;
  if (event.target.closest("input, textarea, select")) return;
  if (event.key === "/") focusComposer(event);
  if (event.key === "?") document.getElementById("help").showModal();
});

// Escape leaves the innermost: the title being edited, a dialog or menu (which the browser closes),
// or the answer being written.
function onEscape(event) {
  const title = event.target.closest("input[data-select]");
  if (title) title.dispatchEvent(new Event("leave"));
  else if (!document.querySelector("dialog[open], :popover-open"))
    document.querySelector("chat-stream")?.cancelTurn();
}

function focusComposer(event) {
  const field = document.querySelector(".composer textarea");
  if (!field) return;
  event.preventDefault();
  field.focus();
}
