// Keep one conversation live: the server renders the page, and the session's events update it.

import { callApi } from "./api.js";
import { Approvals } from "./approvals.js";
import { markSeen } from "./chat_news.js";
import { Composer, createKey } from "./composer.js";
import { ConnectionStatus } from "./connection_status.js";
import "./context_meter.js";
import { tryToMove } from "./context_moves.js";
import { ContextPanel } from "./context_panel.js";
import { EventStream } from "./event_stream.js";
import { EventType } from "./event_types.js";
import "./local_time.js";
import { MessageActions } from "./message_actions.js";
import { RunStatus } from "./run_status.js";
import { SlashCommands } from "./slash_commands.js";
import { showSearchResult } from "./search_highlight.js";
import { showSnackbar } from "./snackbar.js";
import { SummaryCards } from "./summary_cards.js";
import { getText } from "./texts.js";
import { Timeline } from "./timeline.js";
import { TrimNotices } from "./trim_notices.js";

// After this time the request counts as lost; its key makes a second attempt safe.
const POST_MS = 30000;

class ChatStream extends HTMLElement {
  #events; // the stream of a chat that is stored
  #queue = Promise.resolve();

  connectedCallback() {
    this.session = this.dataset.session;
    this.connection = new ConnectionStatus(this);
    this.meter = this.querySelector("context-meter");
    this.timeline = new Timeline(this);
    this.panel = new ContextPanel(this);
    this.approvals = new Approvals(this);
    this.runStatus = new RunStatus(this);
    this.trimNotices = new TrimNotices(this);
    this.composer = new Composer(this);
    this.slash = new SlashCommands(this);
    this.actions = new MessageActions(this);
    this.generating = Boolean(this.dataset.running);
    this.composer.queue.resume();
    this.addEventListener(
      "click",
      (event) => event.target.closest("[data-again]") && this.#rewriteMessage(event.target),
    );
    this.addEventListener("click", (event) => this.#showRecalledMessage(event));
    this.addEventListener("click", (event) => this.#offerWayOn(event));
    this.meter.addEventListener("redo", () => tryToMove(this, "redo"));
    if (this.session) this.#followSession(Number(this.dataset.follow));
    else this.meter.showEmpty(this.composer.contextWindow);
  }

  get model() {
    return this.composer.model;
  }

  set generating(isRunning) {
    this.composer.generating = isRunning;
    this.awaitedTools = "";
    this.approvals.clear();
    this.isBusy = isRunning;
    this.#showWaiting();
  }

  // After a failure: another model, or the rest of an answer that was cut.
  #offerWayOn({ target }) {
    if (target.closest("[data-choose-model]")) this.composer.openPicker();
    if (target.closest("[data-continue]"))
      this.sendMessage(getText("continue"), createKey(), []).catch((problem) =>
        showSnackbar(getText("notSent", { why: problem.message })),
      );
  }

  // Show a message that was brought back, without leaving the page.
  #showRecalledMessage(event) {
    const link = event.target.closest("[data-recalled-seq]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    showSearchResult(this, link.dataset.recalledSeq, "");
  }

  #followSession(after) {
    this.cards = new SummaryCards(this.session, this.timeline);
    this.#refreshCards().catch((problem) => console.warn(problem));
    this.meter.followSession(this.session);
    this.#events = new EventStream(this.session, after, this);
  }

  // Handle the events one after another, although some of them must fetch something first.
  handleEvent(type, data) {
    const handler = HANDLERS[type];
    if (!handler) return;
    this.#queue = this.#queue
      .then(() => handler(this, data))
      .catch((problem) => console.warn(type, problem));
    this.#queue.then(() => this.#showWaiting());
  }

  // Show three dots until the answer begins, or the names of the tools that the turn waits for.
  // This runs with every event, so it writes only what changed.
  #showWaiting() {
    const streaming = this.timeline.list.querySelector(".answer[data-status=streaming]");
    const [waiting, awaitedLine] = [this.querySelector(".waiting"), this.querySelector(".awaited")];
    const text =
      this.isBusy && this.awaitedTools ? getText("awaited", { names: this.awaitedTools }) : "";
    const isSilent = this.isBusy && !streaming && !this.awaitedTools && !this.approvals.isAsking;
    if (waiting.hidden === isSilent) waiting.hidden = !isSilent;
    if (awaitedLine.hidden === Boolean(text)) awaitedLine.hidden = !text;
    if (awaitedLine.textContent !== text) awaitedLine.textContent = text;
  }

  // The client of the API runs these tools, or the person allows others. Then the turn continues.
  waitForTools(calls, approvals = []) {
    this.approvals.ask(approvals);
    this.awaitedTools = [...new Set(calls.map((call) => call.name))].join(", ");
  }

  async sendMessage(content, key, attachments) {
    const body = attachments.length ? { content, attachments } : { content };
    const headers = { Prefer: "respond-async", "Idempotency-Key": key };
    await callApi("POST", `sessions/${this.session}/messages`, body, headers, {
      signal: AbortSignal.timeout(POST_MS),
    }).catch((problem) => {
      // The stream may still believe that the server is there.
      if (problem.status === 0) this.#events?.check();
      if (!problem.repeated) throw problem; // the first attempt had arrived
    });
    this.timeline.followEnd();
  }

  // Store the chat on the server. A new chat exists only on the page until its first message.
  async createSession(fields = {}) {
    const created = await callApi("POST", "sessions", {
      ...(this.model ? { model: this.model } : {}),
      ...fields,
    });
    this.session = created.id;
    history.replaceState(null, "", `/c/${created.id}/`);
    this.#followSession(0);
  }

  async cancelTurn() {
    if (this.isBusy)
      await callApi("POST", `sessions/${this.session}/cancel`).catch((problem) =>
        showSnackbar(getText("failed", { why: problem.message })),
      );
  }

  async changeModel(model) {
    if (!this.session) return this.meter.showEmpty(this.composer.contextWindow);
    try {
      await callApi("PATCH", `sessions/${this.session}`, { model });
    } catch (problem) {
      showSnackbar(getText("failed", { why: problem.message }));
    }
    this.meter.refresh();
  }

  async #refreshCards() {
    const shownRun = this.runStatus.runId;
    const { session, history, running } = await this.cards.refresh();
    if (running)
      this.runStatus.begin({
        id: running.id,
        startedAt: Date.parse(running.started_at),
        expectedSeconds: running.expected_seconds,
      });
    else if (shownRun && shownRun === this.runStatus.runId) this.runStatus.hide(); // its end was not seen
    markSeen(this.session, session.context_version);
    this.meter.offerRedo(history.can_redo);
    this.querySelector(".chat-title").textContent =
      session.title || this.querySelector(".chat-title").textContent;
    document.title = `${this.querySelector(".chat-title").textContent} · Chatcore`;
    this.composer.model = session.model;
    await this.trimNotices.refresh();
  }

  refreshContext() {
    this.meter.refresh();
    this.panel.refresh();
    return this.#refreshCards();
  }

  onCompactionApplied(data) {
    this.runStatus.finish(data);
    return this.refreshContext();
  }

  // A run that made nothing smaller is no news, unless somebody asked for it.
  onCompactionSkipped({ run, reason }) {
    this.runStatus.drop(run);
    this.meter.reportRefusal(reason);
    return this.meter.refresh();
  }

  onCompactionFailed(data) {
    this.meter.isRequested = false;
    this.runStatus.fail(data);
    return this.meter.refresh();
  }

  onSessionUpdated({ fields }) {
    if (fields?.includes("title")) this.#refreshChatList();
    if (fields?.some((field) => field === "messages" || field === "message_count"))
      return this.reloadMessages();
    return this.refreshContext();
  }

  async reloadMessages() {
    await this.timeline.reload();
    return this.refreshContext();
  }

  // Events that this page has not seen are too old to be kept. A turn that is still open has all of
  // its own, and they follow.
  onEventsDropped() {
    this.onTurnCompleted();
    return this.reloadMessages();
  }

  #refreshChatList() {
    document.getElementById("chats").dispatchEvent(new Event("refresh"));
  }

  onTurnStarted() {
    this.querySelector(".welcome").hidden = true;
    this.generating = true;
    this.composer.queue.resume();
    this.meter.refresh();
    this.#refreshChatList();
    return this.#refreshCards();
  }

  onTurnCompleted() {
    this.generating = false;
    this.composer.queue.resume();
  }

  // Hold the queued messages until the user decides what happens to them.
  onTurnInterrupted(reason) {
    this.generating = false;
    this.composer.queue.hold(reason);
  }

  // True when no event is expected and no message waits to be sent.
  get isIdle() {
    return !this.isBusy && !this.composer.queue.isActive;
  }

  #rewriteMessage(button) {
    const question = [...this.timeline.list.querySelectorAll(".user")]
      .filter((user) => user.compareDocumentPosition(button) & Node.DOCUMENT_POSITION_FOLLOWING)
      .at(-1);
    if (question) this.composer.setText(question.querySelector(".words").textContent);
  }
}

const HANDLERS = {
  [EventType.TURN_STARTED]: (chat) => chat.onTurnStarted(),
  [EventType.MESSAGE_CREATED]: (chat, data) => chat.timeline.addMessage(chat.session, data),
  [EventType.MESSAGE_DELTA]: (chat, data) => chat.timeline.appendDelta("text", data),
  [EventType.REASONING_DELTA]: (chat, data) => chat.timeline.appendDelta("reasoning", data),
  [EventType.MESSAGE_COMPLETED]: (chat, data) => chat.timeline.completeMessage(chat.session, data),
  [EventType.TOOL_CALL_STARTED]: (chat, data) => chat.timeline.addToolCall(data),
  [EventType.TOOL_CALL_COMPLETED]: (chat, data) => {
    chat.awaitedTools = "";
    chat.approvals.remove(data.id);
    return chat.timeline.completeToolCall(chat.session, data);
  },
  [EventType.TURN_WAITING]: (chat, data) => chat.waitForTools(data.tool_calls, data.approvals),
  [EventType.APPROVAL_DECIDED]: (chat, data) => chat.approvals.remove(data.id),
  [EventType.TURN_COMPLETED]: (chat) => chat.onTurnCompleted(),
  [EventType.TURN_CANCELLED]: (chat) => chat.onTurnInterrupted("queueStopped"),
  [EventType.TURN_FAILED]: (chat, data) => {
    chat.onTurnInterrupted("queueFailed");
    return chat.timeline.addTurnError(chat.session, data);
  },
  [EventType.CONTEXT_USAGE]: (chat, data) => chat.meter.showUsage(data),
  [EventType.CONTEXT_TRIMMED]: (chat, data) => {
    if (chat.timeline.addTrimNotice(data)) showSnackbar(getText("trimmed"));
    return chat.trimNotices.refresh();
  },
  [EventType.COMPACTION_STARTED]: (chat, data) =>
    chat.runStatus.begin({
      id: data.run,
      startedAt: Date.parse(data.at),
      expectedSeconds: data.expected_seconds,
    }),
  [EventType.COMPACTION_PROGRESS]: (chat, data) => chat.runStatus.progress(data),
  [EventType.COMPACTION_APPLIED]: (chat, data) => chat.onCompactionApplied(data),
  [EventType.COMPACTION_SKIPPED]: (chat, data) => chat.onCompactionSkipped(data),
  [EventType.COMPACTION_FAILED]: (chat, data) => chat.onCompactionFailed(data),
  [EventType.SESSION_UPDATED]: (chat, data) => chat.onSessionUpdated(data),
  [EventType.EVENTS_DROPPED]: (chat) => chat.onEventsDropped(),
};

customElements.define("chat-stream", ChatStream);
