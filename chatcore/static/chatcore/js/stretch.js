// The stretch of a long chat that is on the page: it grows where its end comes near and is cut at the other, or is exchanged for another one.

import { piece } from "./api.js";
import { focused, put, taken } from "./renewal.js";
import { snackbar } from "./snackbar.js";
import { say } from "./words.js";

const MOST = 200; // messages, results within their calls included: as chatcore/stretches.py has it
const NEAR = 2; // heights of what is seen
const OTHER = { before: "after", after: "before" };

export class Stretch {
  #aside = new Map(); // of messages off the page: what is open, being edited or being written goes on there, and comes back with them
  #work = Promise.resolve();
  #growing = false;
  #failed = false; // the button still tries

  constructor(timeline) {
    this.timeline = timeline;
    this.list = timeline.list;
    this.scroller = timeline.scroller;
    for (const button of this.#buttons())
      button.addEventListener("click", () => this.#asked(button));
  }

  #buttons() {
    return this.scroller.querySelectorAll("[data-more]");
  }

  get #articles() {
    return [...this.list.children].filter((each) => "seq" in each.dataset);
  }

  // Whether the chat's newest message is here: only then something new has its place at the end.
  get atNewest() {
    return !("after" in this.list.dataset);
  }

  // When nothing is being exchanged.
  get settled() {
    return this.#work.catch(() => {});
  }

  message(id) {
    return this.list.querySelector(`[data-message="${id}"]`) ?? this.#aside.get(String(id));
  }

  // The message of that seq, or the one whose call it is the result of.
  async reach(seq) {
    if (!this.holds(seq)) await this.go(`at=${seq}`);
    return this.#articles.filter((article) => Number(article.dataset.seq) <= seq).at(-1);
  }

  holds(seq) {
    const first = Number(this.#articles[0]?.dataset.seq ?? Infinity);
    return (
      (first <= seq || !("before" in this.list.dataset)) &&
      seq <= Number(this.list.dataset.after ?? Infinity)
    );
  }

  // Load what follows where its end comes near.
  near() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    if (this.#growing || this.#failed || !clientHeight) return;
    if (scrollTop < NEAR * clientHeight && this.#canGrow("before")) this.#grow("before");
    else if (
      scrollHeight - scrollTop - clientHeight < NEAR * clientHeight &&
      this.#canGrow("after")
    )
      this.#grow("after");
  }

  // Someone else's messages, of which one is wanted; or without `where` the newest.
  go(where = "") {
    return this.#exchange(() => where).catch((problem) =>
      snackbar(say("failed", { why: problem.message })),
    );
  }

  // The same as it is now: other versions, other words, nothing of what is gone.
  renew() {
    return this.#exchange(() => {
      const since = this.#articles[0]?.dataset.seq ?? "";
      return this.atNewest ? `since=${since}` : `since=${since}&size=${weight(this.#articles)}`;
    });
  }

  // After something came: no more than MOST stay.
  cut() {
    const articles = this.#articles;
    if (weight(articles) <= MOST) return;
    const reading = articles.findIndex((article) => article.getBoundingClientRect().bottom > 0);
    const far = reading >= 0 && reading < articles.length / 2 ? "after" : "before";
    this.timeline.keepPlace(() => {
      this.#cut(far);
      this.#cut(OTHER[far]);
    });
    this.#changed();
  }

  async #asked(button) {
    button.focus({ preventScroll: true }); // nothing is held any more by being read
    getSelection().removeAllRanges();
    this.#failed = false;
    await this.#grow(button.dataset.more);
    if (button.isConnected && button.closest("[hidden]"))
      focusOn(this.#articles.at(button.dataset.more === "before" ? 0 : -1));
  }

  #canGrow(side) {
    if (!(side in this.list.dataset)) return false;
    const articles = this.#articles;
    return weight(articles) < MOST || !inUse(articles.at(side === "before" ? -1 : 0));
  }

  #grow(side) {
    return this.#after(async () => {
      const from = this.list.dataset[side];
      if (!from) return;
      this.#growing = true;
      try {
        const [fresh] = await piece(`${this.#address}?${side}=${from}`);
        const more = fresh.dataset[side];
        const elements = taken(fresh, (id) => this.#back(id));
        this.timeline.keepPlace(() => {
          if (side === "before") this.list.prepend(...elements);
          else this.list.append(...elements);
          this.#mark(side, more);
          this.#cut(OTHER[side]);
          this.#cut(side);
          this.timeline.render(this.list);
        });
        this.#changed();
      } catch (problem) {
        this.#failed = true;
        snackbar(say("failed", { why: problem.message }));
      } finally {
        this.#growing = false;
      }
      requestAnimationFrame(() => this.near());
    });
  }

  #exchange(where) {
    return this.#after(async () => {
      const [fresh] = await piece(`${this.#address}?${where()}`);
      const { before, after } = fresh.dataset;
      const wanted = taken(fresh, (id) => this.message(id));
      const focus = focused(this.list);
      for (const article of this.#articles) if (!wanted.includes(article)) this.#layAside(article);
      this.timeline.keepPlace(() => {
        put(this.list, wanted);
        this.timeline.render(this.list);
      });
      for (const article of wanted) this.#aside.delete(article.dataset.message);
      this.#mark("before", before);
      this.#mark("after", after);
      focus?.(this.list);
      this.#failed = false;
      this.#changed();
      requestAnimationFrame(() => this.near());
    });
  }

  // One after the other: each asks from where the one before has left the page.
  #after(work) {
    this.#work = this.#work.then(work, work);
    return this.#work;
  }

  get #address() {
    return `/c/${this.timeline.chat.session}/messages/`;
  }

  #changed() {
    this.timeline.chat.dispatchEvent(new Event("stretched"));
  }

  #back(id) {
    const article = this.#aside.get(id);
    this.#aside.delete(id);
    return article;
  }

  #layAside(article) {
    if (
      article.matches("[data-status=streaming]") ||
      article.querySelector(".editor, details[open]")
    )
      this.#aside.set(article.dataset.message, article);
  }

  #mark(side, seq) {
    if (seq) this.list.dataset[side] = seq;
    else delete this.list.dataset[side];
    for (const button of this.#buttons())
      if (button.dataset.more === side) button.parentElement.hidden = !seq;
  }

  // Drop from one side what is too many, but nothing that is in use nor what is behind it.
  #cut(side) {
    const articles = side === "before" ? this.#articles : this.#articles.reverse();
    let over = weight(articles) - MOST;
    const dropped = [];
    for (const article of articles) {
      if (over <= 0 || dropped.length === articles.length - 1 || inUse(article)) break;
      over -= weight([article]);
      dropped.push(article);
    }
    if (!dropped.length) return;
    for (const article of dropped) this.#layAside(article);
    const range = new Range();
    range.selectNodeContents(this.list);
    if (side === "before") range.setEndBefore(articles[dropped.length]);
    else range.setStartBefore(dropped.at(-1));
    range.deleteContents();
    this.#mark(
      side,
      side === "before" ? articles[dropped.length].dataset.seq : dropped.at(-1).dataset.seq - 1,
    );
  }
}

function weight(articles) {
  return articles.reduce(
    (sum, article) => sum + 1 + article.querySelectorAll("[data-result]").length,
    0,
  );
}

function inUse(article) {
  const selection = getSelection();
  return (
    article.contains(document.activeElement) ||
    (!selection.isCollapsed && selection.containsNode(article, true))
  );
}

function focusOn(article) {
  if (!article) return;
  article.tabIndex = -1;
  article.focus({ preventScroll: true });
}
