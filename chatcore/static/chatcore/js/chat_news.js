// Mark the chats in the list whose context has changed since they were last open: a dot for a
// summary that was written while somebody was elsewhere.

import { loadItem, saveItem } from "./browser_storage.js";
import { getText } from "./texts.js";

const KIND = "seen";
const REFRESH_MS = 60000;
const list = document.getElementById("chats");

// Remember that a person has seen the context of a chat at this version.
export function markSeen(chat, version) {
  saveItem(KIND, chat, version);
  const row = document.getElementById(`row-${chat}`);
  if (row) showDot(row, false);
}

// The words are for screen readers, and are there only while the dot is.
function showDot(row, isShown) {
  const dot = row.querySelector(".row-news");
  dot.hidden = !isShown;
  dot.replaceChildren();
  if (!isShown) return;
  const words = document.createElement("span");
  words.className = "visually-hidden";
  words.textContent = ` ${getText("newSummary")}`;
  dot.append(words);
}

// A chat that is listed for the first time counts as seen.
function showNews() {
  const open = document.querySelector("chat-stream")?.session;
  for (const row of list.querySelectorAll("[data-version]")) {
    const { chat } = row.dataset;
    const version = Number(row.dataset.version);
    const seen = loadItem(KIND, chat);
    if (seen === undefined) return; // the browser stores nothing
    if (seen === null) saveItem(KIND, chat, version);
    showDot(row, seen !== null && seen < version && chat !== open);
  }
}

// Nobody is interrupted: not who moves through the list, nor a server whose page nobody looks at.
function refreshList() {
  if (!document.hidden && !list.contains(document.activeElement))
    list.dispatchEvent(new Event("refresh"));
}

setInterval(refreshList, REFRESH_MS);
document.addEventListener("visibilitychange", refreshList);
document.addEventListener("htmx:afterSettle", showNews);
showNews();
