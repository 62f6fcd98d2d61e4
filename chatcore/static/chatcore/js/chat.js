// One conversation, live: the page as the server rendered it, kept true by the session's events.

import { Actions } from "./actions.js";
import { api } from "./api.js";
import { Cards } from "./cards.js";
import { Composer } from "./composer.js";
import { Connection } from "./connection.js";
import { Events } from "./events.js";
import "./meter.js";
import "./moments.js";
import { Panel } from "./panel.js";
import { Slash } from "./slash.js";
import { snackbar } from "./snackbar.js";
import { Timeline } from "./timeline.js";
import { say } from "./words.js";

const POST_MS = 30000; // longer ones have lost their way; the same key makes sure that nothing is said twice

class ChatStream extends HTMLElement {
  #queue = Promise.resolve();

  connectedCallback() {
    this.session = this.dataset.session;
    this.connection = new Connection(this);
    this.meter = this.querySelector("context-meter");
    this.timeline = new Timeline(this);
    this.panel = new Panel(this);
    this.composer = new Composer(this);
    this.slash = new Slash(this);
    this.actions = new Actions(this);
    this.generating = Boolean(this.dataset.running);
    this.composer.queue.resume();
    this.addEventListener(
      "click",
      (event) => event.target.closest("[data-again]") && this.#writeAgain(event.target),
    );
    if (this.session) this.#follow(Number(this.dataset.follow));
    else this.meter.empty(this.composer.window);
  }

  get model() {
    return this.composer.model;
  }

  set generating(yes) {
    this.composer.generating = yes;
    this.awaited = "";
    this.busy = yes;
    this.#wait();
  }

  #follow(after) {
    this.cards = new Cards(this.session, this.timeline);
    this.#refreshCards().catch((problem) => console.warn(problem));
    this.meter.follow(this.session);
    new Events(this.session, after, this);
  }

  // One event after the other, though some must fetch something first.
  take(name, data) {
    const apply = HANDLERS[name];
    if (!apply) return;
    this.#queue = this.#queue
      .then(() => apply(this, data))
      .catch((problem) => console.warn(name, problem));
    this.#queue.then(() => this.#wait());
  }

  // Three dots while nothing is being said yet; or for whose results everything waits. Asked with every event: what stays is not touched.
  #wait() {
    const speaking = this.timeline.list.querySelector(".answer[data-status=streaming]");
    const [dots, awaited] = [this.querySelector(".waiting"), this.querySelector(".awaited")];
    const words = this.busy && this.awaited ? say("awaited", { names: this.awaited }) : "";
    const silent = this.busy && !speaking && !this.awaited;
    if (dots.hidden === silent) dots.hidden = !silent;
    if (awaited.hidden === Boolean(words)) awaited.hidden = !words;
    if (awaited.textContent !== words) awaited.textContent = words;
  }

  // Another program runs these tools; the turn goes on when their results are in.
  awaits(calls) {
    this.awaited = [...new Set(calls.map((call) => call.name))].join(", ");
  }

  async post(content, key, attachments) {
    const said = attachments.length ? { content, attachments } : { content };
    const headers = { Prefer: "respond-async", "Idempotency-Key": key };
    await api("POST", `sessions/${this.session}/messages`, said, headers, {
      signal: AbortSignal.timeout(POST_MS),
    }).catch((problem) => {
      if (!problem.repeated) throw problem; // it had arrived, though nobody heard of it
    });
    this.timeline.stick();
  }

  // The chat is stored now that something is said in it.
  async begin(fields = {}) {
    const created = await api("POST", "sessions", {
      ...(this.model ? { model: this.model } : {}),
      ...fields,
    });
    this.session = created.id;
    history.replaceState(null, "", `/c/${created.id}/`);
    this.#follow(0);
  }

  async stop() {
    if (this.busy)
      await api("POST", `sessions/${this.session}/cancel`).catch((problem) =>
        snackbar(say("failed", { why: problem.message })),
      );
  }

  async changeModel(model) {
    if (!this.session) return this.meter.empty(this.composer.window);
    try {
      await api("PATCH", `sessions/${this.session}`, { model });
    } catch (problem) {
      snackbar(say("failed", { why: problem.message }));
    }
    this.meter.refresh();
  }

  optimizing(yes) {
    this.querySelector(".optimizing span").hidden = !yes;
  }

  async #refreshCards() {
    const { session, summarizing } = await this.cards.refresh();
    this.optimizing(summarizing);
    this.querySelector(".chat-title").textContent =
      session.title || this.querySelector(".chat-title").textContent;
    document.title = `${this.querySelector(".chat-title").textContent} · Chatcore`;
    this.composer.model = session.model;
  }

  contextChanged() {
    this.meter.refresh();
    this.panel.refresh();
    return this.#refreshCards();
  }

  notOptimized({ reason }) {
    this.optimizing(false);
    this.meter.refused(reason);
  }

  updated({ fields }) {
    if (fields?.includes("title")) this.#refreshList();
    if (fields?.some((field) => field === "messages" || field === "message_count"))
      return this.renew();
    return this.contextChanged();
  }

  async renew() {
    await this.timeline.renew();
    return this.contextChanged();
  }

  #refreshList() {
    document.getElementById("chats").dispatchEvent(new Event("refresh"));
  }

  begun() {
    this.querySelector(".welcome").hidden = true;
    this.generating = true;
    this.composer.queue.resume();
    this.meter.refresh();
    this.#refreshList();
    return this.#refreshCards();
  }

  ended() {
    this.generating = false;
    this.composer.queue.resume();
  }

  // Who stops an answer decides what happens to the messages behind it.
  cut(why) {
    this.generating = false;
    this.composer.queue.hold(why);
  }

  // Nothing will come, and nothing is to be sent, until someone looks again.
  get restful() {
    return !this.busy && !this.composer.queue.inLine;
  }

  #writeAgain(button) {
    const asked = [...this.timeline.list.querySelectorAll(".user")]
      .filter((user) => user.compareDocumentPosition(button) & Node.DOCUMENT_POSITION_FOLLOWING)
      .at(-1);
    if (asked) this.composer.write(asked.querySelector(".words").textContent);
  }
}

const HANDLERS = {
  "turn.started": (chat) => chat.begun(),
  "message.created": (chat, data) => chat.timeline.created(chat.session, data),
  "message.delta": (chat, data) => chat.timeline.hear("text", data),
  "reasoning.delta": (chat, data) => chat.timeline.hear("reasoning", data),
  "message.completed": (chat, data) => chat.timeline.completed(chat.session, data),
  "tool_call.started": (chat, data) => chat.timeline.callStarted(data),
  "tool_call.completed": (chat, data) => {
    chat.awaited = "";
    return chat.timeline.callCompleted(chat.session, data);
  },
  "turn.waiting": (chat, data) => chat.awaits(data.tool_calls),
  "turn.completed": (chat) => chat.ended(),
  "turn.cancelled": (chat) => chat.cut("queueStopped"),
  "turn.failed": (chat, data) => {
    chat.cut("queueFailed");
    return chat.timeline.failed(chat.session, data);
  },
  "context.usage": (chat, data) => chat.meter.show(data),
  "context.trimmed": (chat, data) => {
    if (chat.timeline.trimmed(data)) snackbar(say("trimmed"));
  },
  "compaction.started": (chat) => chat.optimizing(true),
  "compaction.applied": (chat) => chat.contextChanged(),
  "compaction.skipped": (chat, data) => chat.notOptimized(data),
  "compaction.failed": (chat, data) => chat.notOptimized(data),
  "session.updated": (chat, data) => chat.updated(data),
};

customElements.define("chat-stream", ChatStream);
