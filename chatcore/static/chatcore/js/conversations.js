// Deleting a chat, which can be undone as long as the word about it is shown, and importing one from a file.

import { api, send } from "./api.js";
import { forget } from "./keeping.js";
import { offer, snackbar } from "./snackbar.js";
import { say } from "./words.js";

const UNDO_MS = 8000;
const KEY = "deleting"; // handed from the page of the deleted chat to the next one
const list = document.getElementById("chats");
let going = null; // {id, title, shown}: gone from the list, still in the database

// Deleted for good when the word has gone, or the page is left; until then nothing has happened.
function begin(chat) {
  going = chat;
  hide();
  offer(say("deleted", { title: chat.title }), {
    label: say("undo"),
    act: keep,
    close: finish,
    shownFor: UNDO_MS,
  });
}

function keep() {
  const { id, shown } = going;
  going = null;
  if (shown) return location.assign(`/c/${id}/`);
  for (const row of list.querySelectorAll("[data-going]")) delete row.dataset.going;
  snackbar(say("kept"));
}

async function finish() {
  if (!going) return;
  const { id } = going;
  going = null;
  try {
    await api("DELETE", `sessions/${id}`, undefined, {}, { keepalive: true });
    document.getElementById(`row-${id}`)?.remove();
    forget(id);
  } catch (problem) {
    for (const row of list.querySelectorAll("[data-going]")) delete row.dataset.going;
    snackbar(say("notDeleted", { why: problem.message }));
  }
}

function hide() {
  const row = going && document.getElementById(`row-${going.id}`);
  if (row) row.dataset.going = "";
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-deletes]");
  if (button) remove({ id: button.dataset.deletes, title: button.dataset.title });
  event.target.closest(".menu > a")?.parentElement.hidePopover();
  if (event.target.closest("[data-imports]")) document.getElementById("import-file").click();
});

async function remove(chat) {
  if (!location.pathname.startsWith(`/c/${chat.id}/`)) return begin(chat);
  await finish();
  sessionStorage.setItem(KEY, JSON.stringify({ ...chat, shown: true }));
  location.assign("/new/");
}

// The list may come anew meanwhile, with the chat still in it.
document.addEventListener("htmx:afterSwap", hide);
addEventListener("pagehide", () => finish());

const handed = sessionStorage.getItem(KEY);
if (handed) {
  sessionStorage.removeItem(KEY);
  begin(JSON.parse(handed));
}

document.getElementById("import-file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  event.target.value = ""; // the same file may be chosen again
  if (!file) return;
  try {
    const session = await send("sessions/import", file);
    location.assign(`/c/${session.id}/`);
  } catch (problem) {
    snackbar(say("notImported", { why: problem.message }));
  }
});
