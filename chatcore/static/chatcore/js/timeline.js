// The messages on the page: finding and adding them, filling the one being written, and staying at the end while it grows.

import { piece } from "./api.js";
import { viewOf } from "./markdown.js";
import { remember } from "./renewal.js";
import { Spoken } from "./spoken.js";
import { Stretch } from "./stretch.js";
import { say, shortCount } from "./words.js";

const NEAR_THE_END = 64; // pixels

export class Timeline {
  #spoken = new Map(); // "message:kind" → Spoken
  #torn = new Set(); // messages of which a piece is missing
  #stuck = true;
  #top = 0; // where the scroller was last

  constructor(chat) {
    this.chat = chat;
    this.list = chat.querySelector(".timeline");
    this.scroller = chat.querySelector(".scroll");
    this.toEnd = chat.querySelector(".to-end");
    this.stretch = new Stretch(this);
    this.render(this.list);
    this.#followTheEnd();
  }

  message(id) {
    return this.stretch.message(id);
  }

  // Draw the markdown of messages that the server rendered.
  render(root) {
    remember(root);
    for (const prose of root.querySelectorAll(
      ".answer:not([data-status=streaming]) > .prose:not([data-shown])",
    ))
      viewOf(prose).finish(prose.textContent);
    for (const answer of root.querySelectorAll(".answer[data-status=streaming]"))
      this.#tell(answer);
  }

  // Show what is there now: other versions, other words, nothing of what is gone.
  renew() {
    return this.stretch.renew();
  }

  // A message that another request stored: an answer begins empty, anything else is fetched as the server shows it.
  async created(session, data) {
    if (data.role === "tool") return;
    const { message } = data;
    await this.stretch.settled;
    if (this.message(message)) return;
    const elements =
      data.role === "assistant"
        ? this.#begun(data)
        : await piece(`/c/${session}/messages/${message}/`);
    await this.stretch.settled;
    if (!this.#stuck) this.toEnd.dataset.news = "";
    if (!this.stretch.atNewest || this.message(message)) return; // it comes with the newest messages, when someone goes there
    for (const element of elements) this.#insert(element);
    this.stretch.cut();
  }

  #begun({ message, message_seq: seq, turn, replaces }) {
    const [answer] = this.stamp("answer-piece");
    Object.assign(answer.dataset, { message, seq, turn });
    if (replaces) answer.dataset.replaces = replaces;
    answer.querySelector("local-time").setAttribute("datetime", new Date().toISOString());
    return [answer];
  }

  #insert(element) {
    const seq = Number(element.dataset.seq ?? 0);
    const after =
      seq &&
      [...this.list.querySelectorAll("[data-seq]")].find(
        (other) => Number(other.dataset.seq) > seq,
      );
    if (after) after.before(element);
    else this.list.append(element);
  }

  // What is said to a message that is not on the page is kept until it comes.
  hear(kind, { message, offset, text }) {
    const article = this.message(message);
    if (article && article.dataset.status !== "streaming") return;
    const key = `${message}:${kind}`;
    if (!this.#spoken.has(key)) this.#spoken.set(key, new Spoken());
    if (!this.#spoken.get(key).hear(offset, text)) this.#torn.add(message);
    if (article) this.#tell(article);
  }

  #tell(article) {
    const [reasoning, text] = ["reasoning", "text"].map(
      (kind) => this.#spoken.get(`${article.dataset.message}:${kind}`)?.text,
    );
    if (reasoning) this.#reason(article, reasoning);
    if (text) viewOf(article.querySelector(".prose")).grow(text);
  }

  #reason(article, text) {
    const fold = article.querySelector(".reasoning");
    fold.hidden = false;
    fold.dataset.thinking = "";
    fold.querySelector(".words").textContent = text;
  }

  async completed(session, { message, status, usage }) {
    const article = this.message(message);
    const said = this.#spoken.get(`${message}:text`)?.text ?? "";
    for (const kind of ["text", "reasoning"]) this.#spoken.delete(`${message}:${kind}`);
    const torn = this.#torn.delete(message);
    if (article?.dataset.status !== "streaming") return;
    if (torn || article.dataset.replaces) {
      article.replaceWith(...(await piece(`/c/${session}/messages/${message}/`)));
      this.render(this.list);
      return;
    }
    article.dataset.status = status;
    delete article.querySelector(".reasoning").dataset.thinking;
    viewOf(article.querySelector(".prose")).finish(said);
    if (usage) this.#facts(article, usage);
  }

  #facts(article, usage) {
    article.querySelector(".facts").hidden = false;
    article.querySelector(".fact-model").textContent = this.chat.model;
    article.querySelector(".fact-input").textContent = shortCount(usage.input);
    article.querySelector(".fact-output").textContent = shortCount(usage.output ?? 0);
  }

  callStarted({ message, id, name, arguments: asked }) {
    const answer = this.message(message);
    if (!answer || this.#call(id, answer)) return;
    const [call] = this.stamp("call-piece");
    call.dataset.call = id;
    call.querySelector(".call-name").textContent = name;
    call.querySelector(".call-arguments").textContent = readable(asked);
    answer.querySelector(".calls").append(call);
  }

  async callCompleted(session, { message, id, is_error: failed }) {
    const call = this.stretch.atNewest && this.#call(id, this.list);
    if (!call || "done" in call.dataset) return;
    call.dataset.done = "";
    if (failed) call.dataset.error = "";
    call
      .querySelector(".call-result")
      .replaceChildren(...(await piece(`/c/${session}/messages/${message}/`)));
  }

  // The newest call of that id: some models begin to count anew with every answer.
  #call(id, root) {
    return [...root.querySelectorAll(`[data-call="${CSS.escape(id)}"]`)].at(-1);
  }

  trimmed({ turn, notice }) {
    const asked =
      turn &&
      [...this.list.querySelectorAll(".user")].filter((user) => user.dataset.turn === turn).at(-1);
    const there = asked ? asked.nextElementSibling : this.list.lastElementChild;
    if (there?.matches(".notice")) return false;
    const [line] = this.stamp("notice-piece");
    line.textContent = notice || say("trimmed");
    if (asked) asked.after(line);
    else if (this.stretch.atNewest) this.list.append(line);
    return true;
  }

  async failed(session, { turn }) {
    const told = await piece(`/c/${session}/turns/${turn}/error/`);
    await this.stretch.settled;
    if (this.stretch.atNewest && !this.list.querySelector(`[data-error-of="${turn}"]`))
      this.list.append(...told);
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

  // To the newest message, and to stay there.
  async stick() {
    if (!this.stretch.atNewest) await this.stretch.go();
    this.#stuck = true;
    this.#end();
  }

  async #toBeginning() {
    if (!this.stretch.holds(1)) await this.stretch.go("at=1");
    this.#stuck = false;
    this.scroller.scrollTop = 0;
  }

  // Change something, and leave what is read where it is. Browsers try the same (scroll anchoring), but not all and not always.
  keepPlace(change) {
    const { top } = this.scroller.getBoundingClientRect();
    const anchor = [...this.list.children].find(
      (each) => each.getBoundingClientRect().bottom > top,
    );
    const was = anchor?.getBoundingClientRect().top;
    change();
    if (anchor?.isConnected) this.scroller.scrollTop += anchor.getBoundingClientRect().top - was;
  }

  #end() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  #followTheEnd() {
    const { scroller } = this;
    this.#stuck = this.stretch.atNewest;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.toEnd.addEventListener("click", () => this.stick());
    // Who unfolds something reads it from its beginning.
    this.list.addEventListener("click", (event) => {
      if (event.target.closest("summary, [data-unfold]")) this.#stuck = false;
    });
    document.addEventListener("keydown", (event) => this.#keyDown(event));
    const growth = new ResizeObserver(() => this.#stuck && this.#end());
    growth.observe(this.list);
    growth.observe(scroller);
    if (this.#stuck) this.#end();
    this.#scrolled();
  }

  // Only who goes up leaves the end: it may also move away by itself, when an answer or the composer grows.
  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    if (scrollHeight - scrollTop - clientHeight < NEAR_THE_END) this.#stuck = this.stretch.atNewest;
    else if (scrollTop < this.#top) this.#stuck = false;
    this.#top = scrollTop;
    if (this.toEnd.hidden !== this.#stuck) this.toEnd.hidden = this.#stuck;
    if (this.#stuck) delete this.toEnd.dataset.news;
    this.stretch.near();
  }

  #keyDown(event) {
    const ways = { End: () => this.stick(), Home: () => this.#toBeginning() };
    const elsewhere =
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.shiftKey ||
      event.target.closest("input, textarea, select, pre, dialog, .menu");
    if (!(event.key in ways) || elsewhere) return;
    event.preventDefault();
    ways[event.key]();
  }
}

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
