// The session's event stream, from where the page was rendered: it survives a lost line, a restarted server and a sleeping laptop.

import { api } from "./api.js";

const NAMES = [
  "turn.started",
  "turn.waiting",
  "turn.completed",
  "turn.failed",
  "turn.cancelled",
  "message.created",
  "message.delta",
  "message.completed",
  "reasoning.delta",
  "tool_call.started",
  "tool_call.completed",
  "compaction.started",
  "compaction.applied",
  "compaction.skipped",
  "compaction.failed",
  "context.usage",
  "context.trimmed",
  "session.updated",
];
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 15000;
const REST_AFTER_HIDDEN_MS = 60000; // a browser allows six streams to one server; hidden tabs give theirs back
const TICK_MS = 10000;
const SLEPT_MS = 3 * 60000; // between two ticks: the machine was asleep
const STALE_MS = 30 * 60000; // the words of an answer can be heard again for an hour after they were said
const STATES = { 401: "signedOut", 404: "gone" }; // of the connection, by what the server answers

export class Events {
  #source;
  #opening = 0; // the number of the attempt: only the newest goes on
  #retry = FIRST_RETRY_MS;
  #timer;
  #rest;
  #whole = Date.now(); // when nothing was missing here

  // The chat takes each event, is told how the connection is, renews what it shows, and says whether it may rest.
  constructor(session, after, chat) {
    this.session = session;
    this.after = after;
    this.chat = chat;
    document.addEventListener("visibilitychange", () => this.#visibility());
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", (event) => event.persisted && this.#open());
    addEventListener("online", () => this.#open());
    addEventListener("offline", () => this.#open()); // it may be another line than the one to this server
    document.addEventListener("signed-out", () => this.#again("signedOut"));
    setInterval(() => this.#tick(), TICK_MS);
    this.#open();
  }

  async #open() {
    this.#close();
    const attempt = this.#opening;
    try {
      // What was said long ago is not told again: the page asks for all that it shows, and then hears the rest.
      if (Date.now() - this.#whole > STALE_MS) await this.chat.renew();
    } catch (problem) {
      if (attempt === this.#opening) this.#again(STATES[problem.status]);
    }
    if (attempt === this.#opening) this.#listen();
  }

  #listen() {
    const source = new EventSource(`/api/v1/sessions/${this.session}/events?after=${this.after}`);
    this.#source = source;
    for (const name of NAMES) source.addEventListener(name, (event) => this.#receive(name, event));
    source.addEventListener("open", () => this.#opened());
    source.addEventListener(
      "error",
      () => source === this.#source && this.#failed(source.readyState === EventSource.CLOSED),
    );
  }

  #close() {
    this.#opening += 1;
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = undefined;
  }

  #opened() {
    this.#whole = Date.now();
    this.#retry = FIRST_RETRY_MS;
    this.chat.connection.state = "open";
  }

  #receive(name, event) {
    const seq = Number(event.lastEventId);
    if (seq <= this.after) return;
    this.after = seq;
    this.chat.take(name, JSON.parse(event.data));
  }

  // The line broke; or the server answered with an error, and is asked with which.
  async #failed(refused) {
    this.#close();
    const attempt = this.#opening;
    const { status } = refused
      ? await api("GET", `sessions/${this.session}`).catch((problem) => problem)
      : {};
    if (attempt === this.#opening) this.#again(STATES[status]);
  }

  #again(state = "lost") {
    this.#close();
    this.chat.connection.state = state;
    if (state === "gone") return;
    this.#timer = setTimeout(() => this.#open(), this.#retry * (0.5 + Math.random() / 2)); // not all pages in the same moment
    this.#retry = Math.min(this.#retry * 2, LAST_RETRY_MS);
  }

  #tick() {
    if (this.#source?.readyState !== EventSource.OPEN) return;
    if (Date.now() - this.#whole > SLEPT_MS) this.#open();
    else this.#whole = Date.now();
  }

  #visibility() {
    clearTimeout(this.#rest);
    if (document.hidden) this.#restSoon();
    else if (this.#source?.readyState === EventSource.OPEN) this.#tick();
    else this.#open();
  }

  #restSoon() {
    this.#rest = setTimeout(
      () => (this.chat.restful ? this.#close() : this.#restSoon()),
      REST_AFTER_HIDDEN_MS,
    );
  }
}
