// Run the actions of a message: copy, quote, edit, regenerate, pin, fork, delete and the others.

import { callApi, fetchElements } from "./api.js";
import { loadItem, saveItem } from "./browser_storage.js";
import { copyText } from "./clipboard.js";
import { isInputMethodKey } from "./keyboard.js";
import { getMarkdownView } from "./markdown.js";
import { buildPath } from "./paths.js";
import { findsTooLittle } from "./run_preview.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const RESPOND_ASYNC = { Prefer: "respond-async" };

export class MessageActions {
  #menuArticle = null; // the message whose menu is open
  #branchButton = null; // the newest that was pressed in the tree of branches
  #selectedText = "";

  constructor(chat) {
    this.chat = chat;
    this.dialog = document.getElementById("dialog");
    chat.addEventListener(
      "pointerdown",
      (event) => event.target.closest("[data-act=menu]") && this.#rememberSelection(event.target),
    );
    chat.addEventListener("click", (event) => this.#onClick(event));
    document.addEventListener("selectionchange", () => this.#offerQuote());
    this.dialog.addEventListener("click", (event) => this.#onBranchClick(event));
  }

  #onClick({ target }) {
    const button = target.closest("button[data-act], button[data-menu]");
    if (!button || button.ariaDisabled) return;
    const article = button.dataset.menu ? this.#menuArticle : button.closest("article");
    const action = ACTS[button.dataset.menu ?? button.dataset.act];
    this.#runAction(button, () => action(this, article, button));
  }

  async showRequest(article) {
    const { SentRequest } = await import("./context_panel.js");
    this.sentRequest ??= new SentRequest(this.chat);
    await this.sentRequest.open(article);
  }

  async showBranches() {
    const path = buildPath(`c/${this.chat.session}/branches/`);
    this.dialog.replaceChildren(...(await fetchElements(path)));
    this.dialog.showModal();
  }

  // In the tree of branches: open one that is not current, or go to a message of the current path.
  #onBranchClick({ target }) {
    const button = target.closest("[data-goes-to], [data-opens-branch]");
    if (!button) return;
    const { goesTo, opensBranch, seq } = button.dataset;
    this.#branchButton = button;
    this.#runAction(button, async () => {
      if (opensBranch) await this.restore(opensBranch);
      this.dialog.close();
      const focused = document.activeElement;
      if (opensBranch) await this.chat.reloadMessages();
      // Whoever has gone elsewhere meanwhile, or writes, keeps the focus. It goes to another button
      // of the messages by itself, when its own is replaced with them.
      const now = document.activeElement;
      const hasLeft = now !== focused && !now.matches("body, .timeline button");
      if (this.#branchButton !== button || this.dialog.open || hasLeft) return;
      await this.chat.cards.goToMessage(goesTo ?? seq);
    });
  }

  async #runAction(button, action) {
    if (button.dataset.working) return;
    button.dataset.working = "yes";
    try {
      await action();
    } catch (problem) {
      showSnackbar(getText("failed", { why: problem.message }));
    } finally {
      delete button.dataset.working;
    }
  }

  #rememberSelection(button) {
    const selection = getSelection();
    const inside = selection.anchorNode && button.closest("article").contains(selection.anchorNode);
    this.#selectedText = inside ? selection.toString().trim() : "";
  }

  openMenu(article) {
    this.#menuArticle = article;
    const menu = document.getElementById("message-menu");
    menu.toggleAttribute("data-pinned", "pinned" in article.dataset);
    const request = menu.querySelector("[data-menu=request]"); // of an app that may be absent
    if (request) request.hidden = !article.matches(".answer");
    this.#offerSummary(article, menu.querySelector("[data-menu=compact]"));
  }

  // Say beforehand where a summary up to the message would save nothing.
  async #offerSummary(article, button) {
    button.ariaDisabled = null;
    const isTooLittle = await findsTooLittle(this.chat.session, Number(article.dataset.seq));
    if (isTooLittle && article === this.#menuArticle) button.ariaDisabled = "true";
  }

  async copyMessage(article, button) {
    const isCopied = await copyText(button, getSourceText(article));
    if (isCopied && button.dataset.menu) showSnackbar(getText("copied"));
  }

  quote(article) {
    const text = this.#selectedText || getSourceText(article);
    this.#selectedText = "";
    this.chat.composer.quote(text);
  }

  // Show a button where words of a message are selected.
  #offerQuote() {
    const selection = getSelection();
    const button = this.chat.querySelector("[data-act=cite]");
    const isInside =
      !selection.isCollapsed &&
      [selection.anchorNode, selection.focusNode].every((node) =>
        (node.parentElement ?? node).closest(".timeline :is(.prose, .words)"),
      );
    button.hidden = !isInside || !selection.toString().trim();
    if (button.hidden) return;
    const { top, right } = selection.getRangeAt(0).getBoundingClientRect();
    button.style.top = `${Math.max(8, top - button.offsetHeight - 8)}px`;
    button.style.left = `${Math.max(8, right - button.offsetWidth)}px`;
  }

  quoteSelection() {
    const text = getSelection().toString().trim();
    getSelection().removeAllRanges();
    this.chat.composer.quote(text);
  }

  async pin(article) {
    const pinned = !("pinned" in article.dataset);
    await callApi("POST", `messages/${article.dataset.message}/pin`, { pinned });
    article.toggleAttribute("data-pinned", pinned);
  }

  async fork(article) {
    const copy = await callApi("POST", `messages/${article.dataset.message}/fork`);
    location.assign(buildPath(`c/${copy.id}/`));
  }

  regenerate(id) {
    this.chat.timeline.followEnd();
    return callApi("POST", `messages/${id}/regenerate`, {}, RESPOND_ASYNC);
  }

  restore(id) {
    return callApi("POST", `messages/${id}/restore`);
  }

  confirmDelete(article) {
    const [form] = this.chat.timeline.cloneTemplate("delete-template");
    form.addEventListener("submit", () =>
      this.#runAction(form, () => callApi("DELETE", `messages/${article.dataset.message}`)),
    );
    this.dialog.replaceChildren(form);
    this.dialog.showModal();
  }

  // An edit outlives a reload of the page and of the messages, until it is saved. One that was left
  // comes back when the message is edited again.
  #keepEdit(edit) {
    saveItem("edit", this.chat.session, edit);
  }

  get #edit() {
    return loadItem("edit", this.chat.session) ?? {};
  }

  // Open the edit that was open. Where its message is gone, its text goes into the composer.
  restoreEdit() {
    const { message, text, isLeft } = this.#edit;
    if (!message || isLeft) return;
    const article = this.chat.timeline.list.querySelector(`[data-message="${message}"]`);
    if (article) return this.edit(article);
    this.#keepEdit(null);
    this.chat.composer.restoreMessage({ content: text, files: [] });
  }

  edit(article) {
    if (article.querySelector(".editor")) return;
    const [form] = this.chat.timeline.cloneTemplate("editor-template");
    const field = form.querySelector("textarea");
    const { message } = article.dataset;
    field.value = this.#edit.message === message ? this.#edit.text : getSourceText(article);
    field.addEventListener("input", () => this.#keepEdit({ message, text: field.value }));
    field.addEventListener("keydown", (event) => onEditorKeyDown(event, form));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#runAction(form, () => this.#saveEdit(article, field.value));
    });
    article.querySelector(".foot").before(form);
    field.focus();
  }

  // The event stream brings the new message to the page.
  async #saveEdit(article, content) {
    const files = [...article.querySelectorAll(".files a")].map((link) =>
      link.pathname.split("/").at(-1),
    );
    const body = files.length ? { content, attachments: files } : { content };
    await callApi("PATCH", `messages/${article.dataset.message}`, body, RESPOND_ASYNC);
    this.#keepEdit(null);
    this.chat.timeline.followEnd();
  }

  cancelEdit(article) {
    article.querySelector(".editor").remove();
    article.querySelector("[data-act=menu]").focus();
    if (this.#edit.message) this.#keepEdit({ ...this.#edit, isLeft: true });
  }
}

const ACTS = {
  menu: (actions, article) => actions.openMenu(article),
  copy: (actions, article, button) => actions.copyMessage(article, button),
  quote: (actions, article) => actions.quote(article),
  edit: (actions, article) => actions.edit(article),
  cite: (actions) => actions.quoteSelection(),
  leave: (actions, article) => actions.cancelEdit(article),
  regenerate: (actions, article, button) =>
    actions.regenerate(button.dataset.of ?? article.dataset.message),
  restore: (actions, article, button) => actions.restore(button.dataset.version),
  branches: (actions) => actions.showBranches(),
  pin: (actions, article) => actions.pin(article),
  fork: (actions, article) => actions.fork(article),
  compact: (actions, article) =>
    actions.chat.meter.requestCompaction({ up_to_seq: Number(article.dataset.seq) }),
  request: (actions, article) => actions.showRequest(article),
  delete: (actions, article) => actions.confirmDelete(article),
};

// Return the text of a message as it was written, before markdown was applied; with what a program
// put around it.
export function getSourceText(article) {
  return article.matches(".user")
    ? [...article.querySelectorAll("[data-source]")].map((piece) => piece.textContent).join("")
    : getMarkdownView(article.querySelector(".prose")).text;
}

function onEditorKeyDown(event, form) {
  if (isInputMethodKey(event)) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  }
  if (event.key === "Escape") {
    event.stopPropagation(); // Escape must not also stop the answer
    form.querySelector("[data-act=leave]").click();
  }
}
