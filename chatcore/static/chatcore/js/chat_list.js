// Delete a chat, with a few seconds to undo it, and import chats from files.

import { callApi } from "./api.js";
import { removeItems } from "./browser_storage.js";
import { buildPath } from "./paths.js";
import { rove } from "./roving_focus.js";
import { showSnackbar, showSnackbarWithAction } from "./snackbar.js";
import { getText } from "./texts.js";

const UNDO_MS = 8000;
// Carries the deletion from the page of the deleted chat to the next page.
const STORAGE_KEY = "deleting";
const ID_IN_MENU = "00000000-0000-0000-0000-000000000000";
const FLAG_TEXTS = {
  pinned: ["chatNotPinned", "chatPinned"],
  archived: ["chatNotArchived", "chatArchived"],
};
const list = document.getElementById("chats");
let deletion = null; // {id, title, wasOpen}; the row is hidden, the chat is still in the database

// The chat is deleted when the snackbar closes or the page is left; until then nothing has
// happened.
function startDeletion(chat) {
  deletion = chat;
  hideDeletedRow();
  showSnackbarWithAction(getText("deleted", { title: chat.title }), {
    label: getText("undo"),
    action: undoDeletion,
    onDismiss: finishDeletion,
    durationMs: UNDO_MS,
  });
}

function undoDeletion() {
  const { id, wasOpen } = deletion;
  deletion = null;
  if (wasOpen) return location.assign(buildPath(`c/${id}/`));
  for (const row of list.querySelectorAll("[data-going]")) delete row.dataset.going;
  showSnackbar(getText("kept"));
}

async function finishDeletion() {
  if (!deletion) return;
  const { id } = deletion;
  deletion = null;
  try {
    await callApi("DELETE", `sessions/${id}`, undefined, {}, { keepalive: true });
    document.getElementById(`row-${id}`)?.remove();
    removeItems(id);
  } catch (problem) {
    for (const row of list.querySelectorAll("[data-going]")) delete row.dataset.going;
    showSnackbar(getText("notDeleted", { why: problem.message }));
  }
}

function hideDeletedRow() {
  const row = deletion && document.getElementById(`row-${deletion.id}`);
  if (row) row.dataset.going = "";
}

document.addEventListener("click", (event) => {
  const chat = event.target.closest("[data-deletes]")?.closest("[data-chat]");
  if (chat) {
    const title = chat.querySelector(":scope > :is(a, h1)").firstChild.data;
    deleteChat({ id: chat.dataset.chat, title });
  }
  event.target.closest(".menu a")?.closest(".menu").hidePopover();
  if (event.target.closest("[data-imports]")) document.getElementById("import-file").click();
});

async function deleteChat(chat) {
  if (!location.pathname.startsWith(buildPath(`c/${chat.id}/`))) return startDeletion(chat);
  await finishDeletion();
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ ...chat, wasOpen: true }));
  location.assign(buildPath("new/"));
}

// All rows have the same menu, so the page holds it once; a row gets it when it is opened.
function fillMenu(menu) {
  const items = document.getElementById("chat-menu").content.cloneNode(true);
  for (const item of items.querySelectorAll("*"))
    for (const { name, value } of [...item.attributes])
      if (value.includes(ID_IN_MENU))
        item.setAttribute(name, value.replace(ID_IN_MENU, menu.parentElement.dataset.chat));
  // The chat's own head has its field for the title itself (chat_title.js). Only of the chat that is
  // open can branches be opened.
  if (menu.closest(".chat-head")) items.querySelector("[data-renames]").removeAttribute("hx-get");
  else items.querySelector("[data-branches]").remove();
  menu.replaceChildren(items);
  globalThis.htmx.process(menu);
}
document.addEventListener(
  "beforetoggle",
  ({ target, newState }) =>
    newState === "open" && target.matches("[data-chat-menu]:empty") && fillMenu(target),
  true,
);

// A chat was pinned or archived, or no longer is: in the list, or in the head of the open chat.
document.addEventListener("chat-flagged", ({ target, detail: { chat, flag, isOn } }) => {
  target.closest(".menu")?.hidePopover();
  const head = document.querySelector(`.chat-name[data-chat="${chat}"]`);
  head?.toggleAttribute(`data-${flag}`, isOn);
  list.dispatchEvent(new Event("refresh"));
  showSnackbar(getText(FLAG_TEXTS[flag][Number(isOn)]));
});

// The list may be rendered again while the chat is still in it.
document.addEventListener("htmx:afterSwap", hideDeletedRow);
addEventListener("pagehide", () => finishDeletion());
rove(list, ".chat-row");

const storedDeletion = sessionStorage.getItem(STORAGE_KEY);
if (storedDeletion) {
  sessionStorage.removeItem(STORAGE_KEY);
  startDeletion(JSON.parse(storedDeletion));
}

document.getElementById("import-file")?.addEventListener("change", async (event) => {
  const files = [...event.target.files];
  event.target.value = ""; // so that the same file can be chosen again
  if (!files.length) return;
  showSnackbar(getText("importing"));
  try {
    const { importFiles } = await import("./import_upload.js");
    location.assign(buildPath(await importFiles(files)));
  } catch (problem) {
    showSnackbar(getText("notImported", { why: problem.message }));
  }
});
