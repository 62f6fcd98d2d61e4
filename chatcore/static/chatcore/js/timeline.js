// The messages on the page: finding and adding them, filling the one being written, and staying at the end while it grows.

import { piece } from "./api.js";
import { viewOf } from "./markdown.js";
import { remember, renew } from "./renewal.js";
import { Spoken } from "./spoken.js";
import { say, shortCount } from "./words.js";

const NEAR_THE_END = 64; // pixels

export class Timeline {
  #spoken = new Map(); // "message:kind" → Spoken
  #torn = new Set(); // messages of which a piece is missing
  #stuck = true;

  constructor(chat) {
    this.chat = chat;
    this.list = chat.querySelector(".timeline");
    this.scroller = chat.querySelector(".scroll");
    this.toEnd = chat.querySelector(".to-end");
    this.render(this.list);
    this.#followTheEnd();
    this.#keepPlaceWhenEarlierArrive();
  }

  message(id) {
    return this.list.querySelector(`[data-message="${id}"]`);
  }

  // Draw the markdown of messages that the server rendered.
  render(root) {
    remember(root);
    for (const prose of root.querySelectorAll(".answer:not([data-status=streaming]) > .prose:not([data-shown])")) viewOf(prose).finish(prose.textContent);
  }

  // Show what is there now: other versions, other words, nothing of what is gone.
  renew(session) {
    return renew(this, session);
  }

  // A message that another request stored: an answer begins empty, anything else is fetched as the server shows it.
  async created(session, { message, role, message_seq: seq, turn, replaces }) {
    if (this.message(message) || role === "tool") return;
    if (role === "assistant") {
      const [answer] = this.stamp("answer-piece");
      Object.assign(answer.dataset, { message, seq, turn });
      if (replaces) answer.dataset.replaces = replaces;
      this.#insert(answer);
      return;
    }
    for (const element of await piece(`/c/${session}/messages/${message}/`)) this.#insert(element);
    this.stick();
  }

  #insert(element) {
    const seq = Number(element.dataset.seq ?? 0);
    const after = seq && [...this.list.querySelectorAll("[data-seq]")].find((other) => Number(other.dataset.seq) > seq);
    if (after) after.before(element);
    else this.list.append(element);
  }

  hear(kind, { message, offset, text }) {
    const article = this.message(message);
    if (article?.dataset.status !== "streaming") return;
    const key = `${message}:${kind}`;
    if (!this.#spoken.has(key)) this.#spoken.set(key, new Spoken());
    const spoken = this.#spoken.get(key);
    if (!spoken.hear(offset, text)) this.#torn.add(message);
    if (kind === "reasoning") this.#reason(article, spoken.text);
    else viewOf(article.querySelector(".prose")).grow(spoken.text);
  }

  #reason(article, text) {
    const fold = article.querySelector(".reasoning");
    fold.hidden = false;
    fold.dataset.thinking = "";
    fold.querySelector(".words").textContent = text;
  }

  async completed(session, { message, status, usage }) {
    const article = this.message(message);
    if (article?.dataset.status !== "streaming") return;
    if (this.#torn.delete(message) || article.dataset.replaces) {
      article.replaceWith(...(await piece(`/c/${session}/messages/${message}/`)));
      this.render(this.list);
      return;
    }
    article.dataset.status = status;
    delete article.querySelector(".reasoning").dataset.thinking;
    viewOf(article.querySelector(".prose")).finish(this.#spoken.get(`${message}:text`)?.text ?? "");
    if (usage) this.#facts(article, usage);
    this.#spoken.delete(`${message}:text`);
    this.#spoken.delete(`${message}:reasoning`);
  }

  #facts(article, usage) {
    article.querySelector(".facts").hidden = false;
    article.querySelector(".fact-model").textContent = this.chat.model;
    article.querySelector(".fact-input").textContent = shortCount(usage.input);
    article.querySelector(".fact-output").textContent = shortCount(usage.output ?? 0);
  }

  callStarted({ id, name, arguments: asked }) {
    const answer = [...this.list.querySelectorAll(".answer")].at(-1);
    if (!answer || this.#call(id, answer)) return;
    const [call] = this.stamp("call-piece");
    call.dataset.call = id;
    call.querySelector(".call-name").textContent = name;
    call.querySelector(".call-arguments").textContent = readable(asked);
    answer.querySelector(".calls").append(call);
  }

  async callCompleted(session, { message, id, is_error: failed }) {
    const call = this.#call(id, this.list);
    if (!call || "done" in call.dataset) return;
    call.dataset.done = "";
    if (failed) call.dataset.error = "";
    call.querySelector(".call-result").replaceChildren(...(await piece(`/c/${session}/messages/${message}/`)));
  }

  // The newest call of that id: some models begin to count anew with every answer.
  #call(id, root) {
    return [...root.querySelectorAll(`[data-call="${CSS.escape(id)}"]`)].at(-1);
  }

  trimmed({ turn, notice }) {
    const asked = turn && [...this.list.querySelectorAll(".user")].filter((user) => user.dataset.turn === turn).at(-1);
    const there = asked ? asked.nextElementSibling : this.list.lastElementChild;
    if (there?.matches(".notice")) return false;
    const [line] = this.stamp("notice-piece");
    line.textContent = notice || say("trimmed");
    if (asked) asked.after(line);
    else this.list.append(line);
    return true;
  }

  async failed(session, { turn }) {
    if (this.list.querySelector(`[data-error-of="${turn}"]`)) return;
    this.list.append(...(await piece(`/c/${session}/turns/${turn}/error/`)));
  }

  // What the model sees only as a summary is dimmed, and stays.
  dim(boundary) {
    for (const article of this.list.querySelectorAll("[data-seq]")) {
      if (Number(article.dataset.seq) < (boundary ?? 0)) article.dataset.compacted = "";
      else delete article.dataset.compacted;
    }
  }

  stamp(id) {
    return [...document.getElementById(id).content.cloneNode(true).children];
  }

  // Someone wants to see this one: the end is left alone.
  show(article) {
    this.#stuck = false;
    article.scrollIntoView({ block: "center" });
  }

  stick() {
    this.#stuck = true;
    this.#end();
  }

  #end() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  #followTheEnd() {
    const { scroller } = this;
    scroller.addEventListener("scroll", () => {
      this.#stuck = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_THE_END;
      this.toEnd.hidden = this.#stuck;
    }, { passive: true });
    this.toEnd.addEventListener("click", () => this.stick());
    // Who unfolds something reads it from its beginning.
    this.list.addEventListener("click", (event) => {
      if (event.target.closest("summary, [data-unfold]")) this.#stuck = false;
    });
    const growth = new ResizeObserver(() => this.#stuck && this.#end());
    growth.observe(this.list);
    growth.observe(scroller);
    this.#end();
  }

  #keepPlaceWhenEarlierArrive() {
    let anchor, top;
    this.list.addEventListener("htmx:beforeSwap", () => {
      anchor = this.list.querySelector("[data-seq]");
      top = anchor?.getBoundingClientRect().top;
    });
    this.list.addEventListener("htmx:afterSwap", () => {
      this.#stuck = false;
      this.render(this.list);
      const restore = () => (this.scroller.scrollTop += anchor.getBoundingClientRect().top - top);
      restore();
      requestAnimationFrame(() => {
        restore(); // the browser has now measured what it had estimated
        this.chat.dispatchEvent(new Event("earlier"));
      });
    });
  }
}

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
