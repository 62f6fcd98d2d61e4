// Rename the chat in its head: the title turns into a field.

import { callApi } from "./api.js";
import { isInputMethodKey } from "./keyboard.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

export class ChatTitle {
  constructor(chat) {
    this.chat = chat;
    this.heading = chat.querySelector(".chat-title");
    chat.addEventListener(
      "click",
      ({ target }) => target.closest(".chat-head [data-renames]") && this.#edit(),
    );
  }

  #edit() {
    this.chat.querySelector("#head-menu").hidePopover();
    const field = document.createElement("input");
    Object.assign(field, { value: this.heading.textContent, maxLength: 200, autocomplete: "off" });
    field.setAttribute("aria-label", getText("titleOfChat"));
    field.className = "chat-title-field";
    this.heading.classList.add("visually-hidden");
    this.heading.after(field);
    field.select();
    field.addEventListener("keydown", (event) => {
      if (isInputMethodKey(event) || !["Enter", "Escape"].includes(event.key)) return;
      event.preventDefault(); // or Enter would press the button that gets the focus
      event.stopPropagation();
      if (event.key === "Enter") this.#save(field);
      else this.#end(field);
    });
    field.addEventListener("blur", () => this.#end(field));
  }

  async #save(field) {
    const title = field.value.trim();
    this.#end(field);
    if (!title || title === this.heading.textContent) return;
    try {
      await callApi("PATCH", `sessions/${this.chat.session}`, { title });
      this.heading.textContent = title;
      this.chat.news.showTitle();
    } catch (problem) {
      showSnackbar(getText("failed", { why: problem.message }));
    }
  }

  #end(field) {
    if (!this.heading.matches(".visually-hidden")) return;
    this.heading.classList.remove("visually-hidden");
    const hadFocus = document.activeElement === field;
    field.remove();
    if (hadFocus) this.chat.querySelector("[popovertarget=head-menu]").focus();
  }
}
