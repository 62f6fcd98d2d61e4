// Listen to the session's events, from the state in which the page was rendered. Reconnect after a
// lost connection, a restart of the server or a sleep of the computer.

import { callApi } from "./api.js";
import { EventType } from "./event_types.js";
import { buildPath } from "./paths.js";

const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 15000;
// A browser opens at most six connections to one server, so hidden tabs release theirs.
const REST_AFTER_HIDDEN_MS = 60000;
const TICK_MS = 10000;
const SLEPT_MS = 3 * 60000; // a longer time between two ticks means that the computer slept
const STALE_MS = 30 * 60000; // the server keeps deltas for an hour
const STATES = { 401: "signedOut", 404: "gone" }; // state of the connection, by status code

export class EventStream {
  #source;
  #attempt = 0; // only the newest attempt continues
  #retryMs = FIRST_RETRY_MS;
  #retryTimer;
  #restTimer;
  #currentAt = Date.now(); // when the page was last up to date

  // The chat handles the events, shows the state of the connection, reloads its messages, and tells
  // whether it is idle.
  constructor(session, after, chat) {
    this.session = session;
    this.after = after;
    this.chat = chat;
    document.addEventListener("visibilitychange", () => this.#onVisibilityChange());
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", (event) => event.persisted && this.#open());
    addEventListener("online", () => this.#open());
    // The browser may be wrong: the server may still be reachable.
    addEventListener("offline", () => this.#open());
    document.addEventListener("signed-out", () => this.#scheduleRetry("signedOut"));
    setInterval(() => this.#checkForSleep(), TICK_MS);
    this.#open();
  }

  // Connect again, because something says that the connection may be lost.
  check() {
    if (this.#source?.readyState === EventSource.OPEN) this.#open();
  }

  async #open() {
    this.#close();
    const attempt = this.#attempt;
    try {
      // Old deltas are not sent again, so the page reloads its messages first.
      if (Date.now() - this.#currentAt > STALE_MS) await this.chat.reloadMessages();
    } catch (problem) {
      if (attempt === this.#attempt) this.#scheduleRetry(STATES[problem.status]);
    }
    if (attempt === this.#attempt) this.#listen();
  }

  #listen() {
    const source = new EventSource(
      buildPath(`api/v1/sessions/${this.session}/events?after=${this.after}`),
    );
    this.#source = source;
    for (const type of Object.values(EventType))
      source.addEventListener(type, (event) => this.#onEvent(type, event));
    source.addEventListener("open", () => this.#onOpen());
    source.addEventListener(
      "error",
      () => source === this.#source && this.#onError(source.readyState === EventSource.CLOSED),
    );
  }

  #close() {
    this.#attempt += 1;
    clearTimeout(this.#retryTimer);
    this.#source?.close();
    this.#source = undefined;
  }

  #onOpen() {
    this.#currentAt = Date.now();
    this.#retryMs = FIRST_RETRY_MS;
    this.chat.connection.state = "open";
  }

  #onEvent(type, event) {
    const seq = Number(event.lastEventId);
    if (seq <= this.after) return;
    this.after = seq;
    this.chat.handleEvent(type, JSON.parse(event.data));
  }

  // The connection broke, or the server refused it. In the second case, ask for the status code.
  async #onError(refused) {
    this.#close();
    const attempt = this.#attempt;
    const { status } = refused
      ? await callApi("GET", `sessions/${this.session}`).catch((problem) => problem)
      : {};
    if (attempt === this.#attempt) this.#scheduleRetry(STATES[status]);
  }

  #scheduleRetry(state = "lost") {
    this.#close();
    this.chat.connection.state = state;
    if (state === "gone") return;
    // Spread the load over time.
    this.#retryTimer = setTimeout(() => this.#open(), this.#retryMs * (0.5 + Math.random() / 2));
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
  }

  #checkForSleep() {
    if (this.#source?.readyState !== EventSource.OPEN) return;
    if (Date.now() - this.#currentAt > SLEPT_MS) this.#open();
    else this.#currentAt = Date.now();
  }

  #onVisibilityChange() {
    clearTimeout(this.#restTimer);
    if (document.hidden) this.#scheduleRest();
    else if (this.#source?.readyState === EventSource.OPEN) this.#checkForSleep();
    else this.#open();
  }

  #scheduleRest() {
    this.#restTimer = setTimeout(
      () => (this.chat.isIdle ? this.#close() : this.#scheduleRest()),
      REST_AFTER_HIDDEN_MS,
    );
  }
}
