// Mark the chats in the list where something happens or has happened while they were not open: one
// is answering, waits for its person, has a new answer or a new summary.

import { requestWork } from "./api.js";
import { loadItem, saveItem } from "./browser_storage.js";
import { buildPath } from "./paths.js";
import { getText } from "./texts.js";

const SEEN = "seen"; // the version of the context
const READ = "read"; // the number of the newest message
const UNTITLED = "untitled"; // began in this browser, and no model has named it yet
const REFRESH_MS = 60000;
const BUSY_REFRESH_MS = 4000; // while a chat of the list is answering
const TEXTS = {
  waiting: "chatWaits",
  running: "chatAnswers",
  answer: "newAnswer",
  summary: "newSummary",
};
const COUNTED = ["waiting", "answer"];
const list = document.getElementById("chats");
let newsCount = 0;
let timer;

// Remember that a person has seen the context of a chat at this version.
export function markSeen(chat, version) {
  saveItem(SEEN, chat, version);
  const row = document.getElementById(`row-${chat}`);
  if (row?.dataset.news === "summary") showSign(row, "");
}

// A chat that began on a page is named by its model after the first answer, also if the page is left.
export function awaitTitle(chat) {
  saveItem(UNTITLED, chat, true);
}

export function requestTitle(chat) {
  if (!loadItem(UNTITLED, chat)) return;
  saveItem(UNTITLED, chat, null);
  requestWork(buildPath(`c/${chat}/title/`))
    .then(refreshList)
    .catch((problem) => console.warn(problem));
}

// Write how many chats have news before the title of the tab.
export function showCount() {
  const count = newsCount ? `(${newsCount}) ` : "";
  document.title = document.title.replace(/^(● )?(?:\(\d+\) )?/, (_, dot = "") => dot + count);
}

// The words are for screen readers, and are there only while the sign is.
function showSign(row, news) {
  const sign = row.querySelector(".row-news");
  row.dataset.news = news;
  sign.hidden = !news;
  sign.replaceChildren();
  if (!news) return;
  const words = document.createElement("span");
  words.className = "visually-hidden";
  words.textContent = ` ${getText(TEXTS[news])}`;
  sign.append(words);
}

// Return what is new, by what this browser has seen. A chat that is listed for the first time counts
// as seen, but for the answer that is being written; so does all where the browser stores nothing.
function findNews({ chat, turn, version, last }, isOpen) {
  const seen = loadItem(SEEN, chat);
  const read = loadItem(READ, chat);
  if (seen === null) saveItem(SEEN, chat, Number(version));
  if (isOpen || read === null) saveItem(READ, chat, Number(last) - (turn ? 1 : 0));
  if (isOpen) return "";
  if (turn) return turn;
  if (typeof read === "number" && read < Number(last)) return "answer";
  return typeof seen === "number" && seen < Number(version) ? "summary" : "";
}

function showNews() {
  const stream = document.querySelector("chat-stream");
  const open = stream?.session ?? stream?.dataset.session; // at first it is only an attribute
  const rows = [...list.querySelectorAll("[data-version]")];
  for (const row of rows) {
    const { chat, turn } = row.dataset;
    showSign(row, findNews(row.dataset, chat === open));
    if (!turn && chat !== open) requestTitle(chat);
  }
  newsCount = rows.filter((row) => COUNTED.includes(row.dataset.news)).length;
  showCount();
  clearTimeout(timer);
  const isBusy = rows.some((row) => row.dataset.news === "running");
  timer = setTimeout(refreshList, isBusy ? BUSY_REFRESH_MS : REFRESH_MS);
}

// Nobody is interrupted: not who moves through the list, nor a server whose page nobody looks at.
function refreshList() {
  clearTimeout(timer);
  timer = setTimeout(refreshList, REFRESH_MS);
  if (!document.hidden && !list.contains(document.activeElement))
    list.dispatchEvent(new Event("refresh"));
}

document.addEventListener("visibilitychange", refreshList);
document.addEventListener("htmx:afterSettle", showNews);
showNews();
