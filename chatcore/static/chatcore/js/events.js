// The session's event stream, from where the page was rendered: it survives a lost line, a restarted server and a sleeping laptop.

const NAMES = [
  "turn.started", "turn.waiting", "turn.completed", "turn.failed", "turn.cancelled",
  "message.created", "message.delta", "message.completed", "reasoning.delta",
  "tool_call.started", "tool_call.completed",
  "compaction.started", "compaction.applied", "compaction.skipped", "compaction.failed",
  "context.usage", "context.trimmed", "session.updated",
];
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 15000;
const REST_AFTER_HIDDEN_MS = 60000; // a browser allows six streams to one server; hidden tabs give theirs back

export class Events {
  #source;
  #retry = FIRST_RETRY_MS;
  #timer;
  #rest;

  constructor(session, after, take) {
    this.session = session;
    this.after = after;
    this.take = take;
    document.addEventListener("visibilitychange", () => this.#visibility());
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", (event) => event.persisted && this.#open());
    this.#open();
  }

  #open() {
    this.#close();
    this.#source = new EventSource(`/api/v1/sessions/${this.session}/events?after=${this.after}`);
    for (const name of NAMES) this.#source.addEventListener(name, (event) => this.#receive(name, event));
    this.#source.addEventListener("open", () => (this.#retry = FIRST_RETRY_MS));
    this.#source.addEventListener("error", () => this.#failed());
  }

  #close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = undefined;
  }

  #receive(name, event) {
    const seq = Number(event.lastEventId);
    if (seq <= this.after) return;
    this.after = seq;
    this.take(name, JSON.parse(event.data));
  }

  // The browser reconnects by itself, with Last-Event-ID, unless the server answered with an error.
  #failed() {
    if (this.#source?.readyState !== EventSource.CLOSED) return;
    this.#close();
    this.#timer = setTimeout(() => this.#open(), this.#retry);
    this.#retry = Math.min(this.#retry * 2, LAST_RETRY_MS);
  }

  #visibility() {
    clearTimeout(this.#rest);
    if (document.hidden) this.#rest = setTimeout(() => this.#close(), REST_AFTER_HIDDEN_MS);
    else if (!this.#source) this.#open();
  }
}
