// What can be done with a message: copy, quote, edit, answer again, step through versions, pin, fork, delete.

import { api } from "./api.js";
import { copy } from "./copying.js";
import { viewOf } from "./markdown.js";
import { snackbar } from "./snackbar.js";
import { say } from "./words.js";

const NOT_WAITED_FOR = { Prefer: "respond-async" };

export class Actions {
  #article = null; // whose menu is open
  #selected = "";

  constructor(chat) {
    this.chat = chat;
    this.dialog = document.getElementById("dialog");
    chat.addEventListener(
      "pointerdown",
      (event) => event.target.closest("[data-act=menu]") && this.#noteSelection(event.target),
    );
    chat.addEventListener("click", (event) => this.#click(event));
  }

  #click({ target }) {
    const button = target.closest("button[data-act], button[data-menu]");
    if (!button) return;
    const article = button.dataset.menu ? this.#article : button.closest("article");
    const act = ACTS[button.dataset.menu ?? button.dataset.act];
    this.#try(button, () => act(this, article, button));
  }

  async #try(button, act) {
    if (button.dataset.working) return;
    button.dataset.working = "yes";
    try {
      await act();
    } catch (problem) {
      snackbar(say("failed", { why: problem.message }));
    } finally {
      delete button.dataset.working;
    }
  }

  #noteSelection(button) {
    const selection = getSelection();
    const inside = selection.anchorNode && button.closest("article").contains(selection.anchorNode);
    this.#selected = inside ? selection.toString().trim() : "";
  }

  menu(article) {
    this.#article = article;
    document
      .getElementById("message-menu")
      .toggleAttribute("data-pinned", "pinned" in article.dataset);
  }

  async copy(article, button) {
    await copy(button, words(article));
    if (button.dataset.menu) snackbar(say("copied"));
  }

  quote(article) {
    const text = this.#selected || words(article);
    this.#selected = "";
    this.chat.composer.quote(text);
  }

  async pin(article) {
    const pinned = !("pinned" in article.dataset);
    await api("POST", `messages/${article.dataset.message}/pin`, { pinned });
    article.toggleAttribute("data-pinned", pinned);
  }

  async fork(article) {
    const made = await api("POST", `messages/${article.dataset.message}/fork`);
    location.assign(`/c/${made.id}/`);
  }

  regenerate(id) {
    this.chat.timeline.stick();
    return api("POST", `messages/${id}/regenerate`, {}, NOT_WAITED_FOR);
  }

  restore(id) {
    return api("POST", `messages/${id}/restore`);
  }

  askToDelete(article) {
    const [form] = this.chat.timeline.stamp("delete-piece");
    form.addEventListener("submit", () =>
      this.#try(form, () => api("DELETE", `messages/${article.dataset.message}`)),
    );
    this.dialog.replaceChildren(form);
    this.dialog.showModal();
  }

  edit(article) {
    if (article.querySelector(".editor")) return;
    const [form] = this.chat.timeline.stamp("editor-piece");
    const field = form.querySelector("textarea");
    field.value = words(article);
    field.addEventListener("keydown", (event) => editorKey(event, form));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#try(form, () => this.#resend(article, field.value));
    });
    article.querySelector(".foot").before(form);
    field.focus();
  }

  // The page takes the new message over when it hears of it.
  async #resend(article, content) {
    const files = [...article.querySelectorAll(".files a")].map((link) =>
      link.pathname.split("/").at(-1),
    );
    const body = files.length ? { content, attachments: files } : { content };
    await api("PATCH", `messages/${article.dataset.message}`, body, NOT_WAITED_FOR);
    this.chat.timeline.stick();
  }

  leave(article) {
    article.querySelector(".editor").remove();
    article.querySelector("[data-act=menu]").focus();
  }
}

const ACTS = {
  menu: (actions, article) => actions.menu(article),
  copy: (actions, article, button) => actions.copy(article, button),
  quote: (actions, article) => actions.quote(article),
  edit: (actions, article) => actions.edit(article),
  leave: (actions, article) => actions.leave(article),
  regenerate: (actions, article, button) =>
    actions.regenerate(button.dataset.of ?? article.dataset.message),
  restore: (actions, article, button) => actions.restore(button.dataset.version),
  pin: (actions, article) => actions.pin(article),
  fork: (actions, article) => actions.fork(article),
  compact: (actions, article) =>
    actions.chat.meter.optimize({ up_to_seq: Number(article.dataset.seq) }),
  delete: (actions, article) => actions.askToDelete(article),
};

// As they were written, without what the page makes of them.
function words(article) {
  return article.matches(".user")
    ? article.querySelector(".words").textContent
    : viewOf(article.querySelector(".prose")).text;
}

function editorKey(event, form) {
  if (event.isComposing) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  }
  if (event.key === "Escape") {
    event.stopPropagation(); // the answer being written goes on
    form.querySelector("[data-act=leave]").click();
  }
}
