// Load a part of a long chat: scrolling loads messages at one end and removes them at the other.

import { fetchElements } from "./api.js";
import { arrangeElements, mergeElements, saveFocus } from "./message_merge.js";
import { buildPath } from "./paths.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const MAX_MESSAGES = 200; // messages with their tool results; a test holds it equal to the server's
const PRELOAD_SCREENS = 2; // distance to the end, in heights of the visible area
const OPPOSITE_SIDE = { before: "after", after: "before" };

export class MessagePager {
  // Removed messages that are open, edited or streaming; they come back as they were.
  #detached = new Map();
  #pending = Promise.resolve();
  #loading = false;
  #loadFailed = false; // do not load again by scrolling; the button still works

  constructor(timeline) {
    this.timeline = timeline;
    this.list = timeline.list;
    this.scroller = timeline.scroller;
    for (const button of this.#getButtons())
      button.addEventListener("click", () => this.#onButtonClick(button));
  }

  #getButtons() {
    return this.scroller.querySelectorAll("[data-more]");
  }

  get #articles() {
    return [...this.list.children].filter((each) => "seq" in each.dataset);
  }

  // True when the newest message is loaded. Only then can a new message be appended.
  get hasNewest() {
    return !("after" in this.list.dataset);
  }

  // A promise that resolves when nothing is being loaded.
  get whenIdle() {
    return this.#pending.catch(() => {});
  }

  findMessage(id) {
    return this.list.querySelector(`[data-message="${id}"]`) ?? this.#detached.get(String(id));
  }

  // Return the message with this seq, or the one with the tool call whose result it is.
  async loadMessage(seq) {
    if (!this.includesSeq(seq)) await this.loadPage(`at=${seq}`);
    return this.#articles.filter((article) => Number(article.dataset.seq) <= seq).at(-1);
  }

  includesSeq(seq) {
    const first = Number(this.#articles[0]?.dataset.seq ?? Infinity);
    return (
      (first <= seq || !("before" in this.list.dataset)) &&
      seq <= Number(this.list.dataset.after ?? Infinity)
    );
  }

  // Load more messages when an end of the loaded part comes near.
  loadIfNearEdge() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    if (this.#loading || this.#loadFailed || !clientHeight) return;
    if (scrollTop < PRELOAD_SCREENS * clientHeight && this.#canLoad("before"))
      this.#loadMore("before");
    else if (
      scrollHeight - scrollTop - clientHeight < PRELOAD_SCREENS * clientHeight &&
      this.#canLoad("after")
    )
      this.#loadMore("after");
  }

  // Replace the loaded messages by the page of a query; without a query by the newest ones.
  loadPage(query = "") {
    return this.#replacePage(() => query).catch((problem) =>
      showSnackbar(getText("failed", { why: problem.message })),
    );
  }

  // Load the same messages again: versions and texts may have changed, messages may be deleted.
  reload() {
    return this.#replacePage(() => {
      const firstSeq = this.#articles[0]?.dataset.seq ?? "";
      return this.hasNewest
        ? `since=${firstSeq}`
        : `since=${firstSeq}&size=${countMessages(this.#articles)}`;
    });
  }

  // Remove messages so that at most MAX_MESSAGES stay.
  trim() {
    const articles = this.#articles;
    if (countMessages(articles) <= MAX_MESSAGES) return;
    const firstVisible = articles.findIndex(
      (article) => article.getBoundingClientRect().bottom > 0,
    );
    const farSide = firstVisible >= 0 && firstVisible < articles.length / 2 ? "after" : "before";
    this.timeline.keepScrollPosition(() => {
      this.#trimSide(farSide);
      this.#trimSide(OPPOSITE_SIDE[farSide]);
    });
    this.#announceChange();
  }

  async #onButtonClick(button) {
    // The end of a selection or focus frees messages to be removed.
    button.focus({ preventScroll: true });
    getSelection().removeAllRanges();
    this.#loadFailed = false;
    await this.#loadMore(button.dataset.more);
    if (button.isConnected && button.closest("[hidden]"))
      focusArticle(this.#articles.at(button.dataset.more === "before" ? 0 : -1));
  }

  #canLoad(side) {
    if (!(side in this.list.dataset)) return false;
    const articles = this.#articles;
    return (
      countMessages(articles) < MAX_MESSAGES || !isInUse(articles.at(side === "before" ? -1 : 0))
    );
  }

  #loadMore(side) {
    return this.#enqueue(async () => {
      const from = this.list.dataset[side];
      if (!from) return;
      this.#loading = true;
      try {
        const [section] = await fetchElements(`${this.#url}?${side}=${from}`);
        const nextEdge = section.dataset[side];
        const elements = mergeElements(section, (id) => this.#reattach(id));
        this.timeline.keepScrollPosition(() => {
          if (side === "before") this.list.prepend(...elements);
          else this.list.append(...elements);
          this.#setEdge(side, nextEdge);
          this.#trimSide(OPPOSITE_SIDE[side]);
          this.#trimSide(side);
          this.timeline.renderMarkdown(this.list);
        });
        this.#announceChange();
      } catch (problem) {
        this.#loadFailed = true;
        showSnackbar(getText("failed", { why: problem.message }));
      } finally {
        this.#loading = false;
      }
      requestAnimationFrame(() => this.loadIfNearEdge());
    });
  }

  #replacePage(query) {
    return this.#enqueue(async () => {
      const [section] = await fetchElements(`${this.#url}?${query()}`);
      const { before, after } = section.dataset;
      const elements = mergeElements(section, (id) => this.findMessage(id));
      const focus = saveFocus(this.list);
      for (const article of this.#articles) if (!elements.includes(article)) this.#detach(article);
      this.timeline.keepScrollPosition(() => {
        arrangeElements(this.list, elements);
        this.timeline.renderMarkdown(this.list);
      });
      for (const article of elements) this.#detached.delete(article.dataset.message);
      this.#setEdge("before", before);
      this.#setEdge("after", after);
      focus?.(this.list);
      this.#loadFailed = false;
      this.#announceChange();
      requestAnimationFrame(() => this.loadIfNearEdge());
    });
  }

  // Run one task after another, because each begins where the previous one has left the page.
  #enqueue(task) {
    this.#pending = this.#pending.then(task, task);
    return this.#pending;
  }

  get #url() {
    return buildPath(`c/${this.timeline.chat.session}/messages/`);
  }

  #announceChange() {
    this.timeline.chat.dispatchEvent(new Event("pagechange"));
  }

  #reattach(id) {
    const article = this.#detached.get(id);
    this.#detached.delete(id);
    return article;
  }

  #detach(article) {
    if (
      article.matches("[data-status=streaming]") ||
      article.querySelector(".editor, details[open]")
    )
      this.#detached.set(article.dataset.message, article);
  }

  #setEdge(side, seq) {
    if (seq) this.list.dataset[side] = seq;
    else delete this.list.dataset[side];
    for (const button of this.#getButtons())
      if (button.dataset.more === side) button.parentElement.hidden = !seq;
  }

  // Remove excess messages from one side, but not one that is in use, nor those behind it.
  #trimSide(side) {
    const articles = side === "before" ? this.#articles : this.#articles.reverse();
    let excess = countMessages(articles) - MAX_MESSAGES;
    const removed = [];
    for (const article of articles) {
      if (excess <= 0 || removed.length === articles.length - 1 || isInUse(article)) break;
      excess -= countMessages([article]);
      removed.push(article);
    }
    if (!removed.length) return;
    for (const article of removed) this.#detach(article);
    const range = new Range();
    range.selectNodeContents(this.list);
    if (side === "before") range.setEndBefore(articles[removed.length]);
    else range.setStartBefore(removed.at(-1));
    range.deleteContents();
    this.#setEdge(
      side,
      side === "before" ? articles[removed.length].dataset.seq : removed.at(-1).dataset.seq - 1,
    );
  }
}

function countMessages(articles) {
  return articles.reduce(
    (sum, article) => sum + 1 + article.querySelectorAll("[data-result]").length,
    0,
  );
}

function isInUse(article) {
  const selection = getSelection();
  return (
    article.contains(document.activeElement) ||
    (!selection.isCollapsed && selection.containsNode(article, true))
  );
}

function focusArticle(article) {
  if (!article) return;
  article.tabIndex = -1;
  article.focus({ preventScroll: true });
}
