// A temporary chat: chosen on the page of a new chat, named in the header, and kept from there.

import { callApi } from "./api.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const findSwitch = (chat) => chat.querySelector("[data-temporary-switch]");

// What a new chat is stored with.
export function readTemporary(chat) {
  return findSwitch(chat)?.checked ? { temporary: true } : {};
}

// The chat is stored: say in the header what it is.
export function showTemporary(chat) {
  const isTemporary = Boolean(findSwitch(chat)?.checked);
  chat.querySelector(".temporary").hidden = !isTemporary;
  findSwitch(chat)?.closest(".temporary-choice").remove();
}

export function offerKeeping(chat) {
  chat.querySelector("[data-keeps-chat]").addEventListener("click", async () => {
    try {
      await callApi("PATCH", `sessions/${chat.session}`, { temporary: false });
    } catch (problem) {
      return showSnackbar(getText("failed", { why: problem.message }));
    }
    chat.querySelector(".temporary").hidden = true;
    document.getElementById("chats").dispatchEvent(new Event("refresh"));
  });
}
