// Keep one conversation live: the server renders the page, and the session's events update it.

import { callApi, fetchText } from "./api.js";
import { AnswerNews } from "./answer_news.js";
import { AnswerWait } from "./answer_wait.js";
import { Approvals } from "./approvals.js";
import { awaitTitle, markSeen, requestTitle } from "./chat_news.js";
import { Composer, createKey } from "./composer.js";
import { ChatTitle } from "./chat_title.js";
import { ConnectionStatus } from "./connection_status.js";
import "./context_meter.js";
import { tryToMove } from "./context_moves.js";
import { EventStream } from "./event_stream.js";
import { EventType } from "./event_types.js";
import "./local_time.js";
import { LongChatNote } from "./long_chat_note.js";
import { MessageActions, getSourceText } from "./message_actions.js";
import { OtherModel } from "./other_model.js";
import { buildPath } from "./paths.js";
import { RunStatus } from "./run_status.js";
import { SlashCommands } from "./slash_commands.js";
import { showSearchResult } from "./search_highlight.js";
import { showSnackbar } from "./snackbar.js";
import { SummaryCards } from "./summary_cards.js";
import { offerKeeping, readTemporary, showTemporary } from "./temporary_chat.js";
import { getText } from "./texts.js";
import { Timeline } from "./timeline.js";
import { TrimNotices } from "./trim_notices.js";

// After this time the request counts as lost; its key makes a second attempt safe.
const POST_MS = 30000;

// Send a message; under the same key it arrives once. A problem's `arrival` is "unsure" when no
// response came.
async function postMessage(session, content, key, attachments) {
  const body = attachments.length ? { content, attachments } : { content };
  const headers = { Prefer: "respond-async", "Idempotency-Key": key };
  try {
    await callApi("POST", `sessions/${session}/messages`, body, headers, {
      signal: AbortSignal.timeout(POST_MS),
    });
  } catch (problem) {
    if (problem.repeated) return; // the first attempt had arrived
    if (problem.status === 0) problem.arrival = "unsure";
    if (problem.status === 404) problem.message = getText("gone"); // deleted in another place
    throw problem;
  }
}

class ChatStream extends HTMLElement {
  #events; // the stream of a chat that is stored
  #queue = Promise.resolve();

  connectedCallback() {
    this.session = this.dataset.session;
    this.connection = new ConnectionStatus(this);
    this.meter = this.querySelector("context-meter");
    this.timeline = new Timeline(this);
    this.approvals = new Approvals(this);
    this.news = new AnswerNews(this);
    new ChatTitle(this);
    this.wait = new AnswerWait(
      this.querySelector(".waiting"),
      Date.parse(this.dataset.runningSince),
    );
    this.runStatus = new RunStatus(this);
    this.trimNotices = new TrimNotices(this);
    new OtherModel(this);
    this.longChatNote = new LongChatNote(this);
    this.composer = new Composer(this);
    this.slash = new SlashCommands(this);
    this.actions = new MessageActions(this);
    this.generating = Boolean(this.dataset.running);
    offerKeeping(this);
    this.composer.queue.resume();
    this.addEventListener(
      "click",
      (event) => event.target.closest("[data-again]") && this.#rewriteMessage(event.target),
    );
    this.addEventListener("click", (event) => this.#showRecalledMessage(event));
    this.addEventListener("click", (event) => this.#offerWayOn(event));
    this.addEventListener("click", ({ target }) => {
      const example = target.closest("[data-example]");
      if (example) this.composer.setText(example.textContent.trim());
      const question = target.closest("[data-asks]");
      if (question) this.composer.ask(question.textContent.trim());
      if (target.closest("[data-opens-summary]")) this.cards.openCurrent();
    });
    this.addEventListener("click", ({ target }) => {
      if (target.closest("[data-context-panel]")) this.openPanel();
    });
    this.meter.addEventListener("redo", () => tryToMove(this, "redo"));
    if (this.session) this.#followSession(Number(this.dataset.follow));
    if (this.session) this.actions.restoreEdit();
    if (this.session && !this.generating) requestTitle(this.session);
    else this.meter.showEmpty(this.composer);
  }

  get model() {
    return this.composer.model;
  }

  set generating(isRunning) {
    this.composer.generating = isRunning;
    this.awaitedTools = "";
    this.approvals.clear();
    this.isBusy = isRunning;
    if (isRunning) this.news.begin();
    else this.news.end();
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
    this.meter.session = this.session;
    this.#refreshCards()
      .then(() => this.longChatNote.refresh())
      .catch((problem) => console.warn(problem));
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

  // Show that an answer is waited for, or the names of the tools that the turn waits for. This runs
  // with every event, so it writes only what changed.
  #showWaiting() {
    const streaming = this.timeline.list.querySelector(".answer[data-status=streaming]");
    const awaitedLine = this.querySelector(".awaited");
    const text =
      this.isBusy && this.awaitedTools ? getText("awaited", { names: this.awaitedTools }) : "";
    const isSilent = this.isBusy && !streaming && !this.awaitedTools && !this.approvals.isAsking;
    this.wait.show(Boolean(isSilent));
    if (awaitedLine.hidden === Boolean(text)) awaitedLine.hidden = !text;
    if (awaitedLine.textContent !== text) awaitedLine.textContent = text;
  }

  // The client of the API runs these tools, or the person allows others. Then the turn continues.
  waitForTools(calls, approvals = []) {
    this.approvals.ask(approvals);
    this.awaitedTools = [...new Set(calls.map((call) => call.name))].join(", ");
  }

  async sendMessage(content, key, attachments) {
    await postMessage(this.session, content, key, attachments).catch((problem) => {
      // The stream may still believe that the server is there.
      if (problem.status === 0) this.#events?.check();
      throw problem;
    });
    this.timeline.followEnd();
  }

  // Store a new chat with its first message; `prepare` uploads the files into the chat and returns
  // {ids, key}. A chat whose first message is refused is deleted, so that none stays empty.
  async startChat(content, prepare) {
    const { id } = await this.#storeChat();
    const discard = () =>
      callApi("DELETE", `sessions/${id}`, undefined, {}, { keepalive: true }).catch((problem) =>
        console.warn(problem),
      );
    addEventListener("pagehide", discard);
    try {
      const { ids, key } = await prepare(id);
      removeEventListener("pagehide", discard);
      await postMessage(id, content, key, ids);
    } catch (problem) {
      removeEventListener("pagehide", discard);
      if (problem.arrival === "unsure") this.#openChat(id);
      else await discard();
      throw problem;
    }
    this.#openChat(id);
    this.timeline.followEnd();
  }

  // Store the chat without a message, because somebody has chosen settings for it.
  async createSession(fields) {
    this.#openChat((await this.#storeChat(fields)).id);
  }

  #storeChat(fields = {}) {
    const model = this.model ? { model: this.model } : {};
    const project = this.dataset.project ? { project: this.dataset.project } : {};
    return callApi("POST", "sessions", { ...model, ...project, ...readTemporary(this), ...fields });
  }

  // Go on as the page of this chat.
  #openChat(id) {
    this.session = id;
    this.querySelector(".chat-name").dataset.chat = id;
    showTemporary(this);
    if ("writesTitles" in this.dataset) awaitTitle(id);
    history.replaceState(null, "", buildPath(`c/${id}/`));
    this.composer.moveDraft(id);
    this.#followSession(0);
  }

  async cancelTurn() {
    if (this.isBusy)
      await callApi("POST", `sessions/${this.session}/cancel`).catch((problem) =>
        showSnackbar(getText("failed", { why: problem.message })),
      );
  }

  async changeModel(model) {
    if (!this.session) {
      this.composer.files.describe();
      return this.meter.showEmpty(this.composer);
    }
    this.#showSwitch("");
    this.longChatNote.hide(); // the switch says what it needs first
    try {
      await callApi("PATCH", `sessions/${this.session}`, { model });
      this.#showSwitch(
        await fetchText(buildPath(`c/${this.session}/switch/?to=${encodeURIComponent(model)}`)),
      );
    } catch (problem) {
      showSnackbar(getText("failed", { why: problem.message }));
    }
    this.composer.files.describe();
    this.meter.refresh();
  }

  // Say what the model that was chosen needs first, until it has answered.
  #showSwitch(text) {
    this.querySelector(".switch-note").textContent = text;
  }

  async #refreshCards() {
    const shownRun = this.runStatus.runId;
    const [{ session, history }] = await Promise.all([this.cards.refresh(), this.meter.refresh()]);
    const running = this.meter.usage?.compacting && (await this.cards.findRunning());
    if (running)
      this.runStatus.begin({
        id: running.id,
        startedAt: Date.parse(running.started_at),
        expectedSeconds: running.expected_seconds,
      });
    else if (shownRun && shownRun === this.runStatus.runId) this.runStatus.hide(); // its end was not seen
    this.runStatus.follow(session.context_version);
    markSeen(this.session, session.context_version);
    this.meter.offerRedo(history.can_redo);
    this.querySelector(".chat-title").textContent =
      session.title || this.querySelector(".chat-title").textContent;
    this.news.showTitle();
    this.composer.model = session.model;
    await this.trimNotices.refresh();
  }

  // Show what the model sees. Like all that many never open, its code comes when it is asked for.
  async openPanel() {
    try {
      const { ContextPanel } = await import("./context_panel.js");
      this.panel ??= new ContextPanel(this);
      await this.panel.open();
    } catch (problem) {
      showSnackbar(getText("failed", { why: problem.message }));
    }
  }

  refreshContext() {
    this.panel?.refresh();
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

  async onCompactionFailed({ run }) {
    this.meter.isRequested = false;
    this.runStatus.drop(run);
    await this.meter.refresh();
    return this.trimNotices.refresh({ failedRun: run });
  }

  onSessionUpdated({ fields }) {
    if (fields?.includes("title")) this.#refreshChatList();
    if (fields?.some((field) => field === "messages" || field === "message_count"))
      return this.reloadMessages();
    return this.refreshContext();
  }

  async reloadMessages() {
    await this.timeline.reload();
    this.actions.restoreEdit();
    this.panel?.refresh();
    await this.#refreshCards();
    return this.longChatNote.refresh();
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
    this.querySelector(".welcome, .onboarding")?.setAttribute("hidden", "");
    this.querySelector(".sample-questions")?.remove();
    this.generating = true;
    this.#showSwitch("");
    this.longChatNote.hide();
    this.querySelector(".answered").textContent = "";
    this.composer.queue.resume();
    this.#refreshChatList();
    return this.#refreshCards();
  }

  // A question may bring a line with it that says what is left out.
  async onMessageCreated(data) {
    await this.timeline.addMessage(this.session, data);
    if (data.role === "user") await this.trimNotices.refresh();
  }

  onTurnCompleted() {
    this.generating = false;
    this.querySelector(".answered").textContent = getText("answered");
    this.composer.queue.resume();
    requestTitle(this.session); // comes as an event; else the beginning of the first message stays
    this.#refreshChatList();
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
    if (question) this.composer.setText(getSourceText(question));
  }
}

const HANDLERS = {
  [EventType.TURN_STARTED]: (chat) => chat.onTurnStarted(),
  [EventType.TURN_READING]: (chat, data) => chat.wait.tell(data.read / data.total),
  [EventType.MESSAGE_CREATED]: (chat, data) => chat.onMessageCreated(data),
  [EventType.MESSAGE_DELTA]: (chat, data) => chat.timeline.appendDelta("text", data),
  [EventType.REASONING_DELTA]: (chat, data) => chat.timeline.appendDelta("reasoning", data),
  [EventType.MESSAGE_COMPLETED]: (chat, data) => chat.timeline.completeMessage(data),
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
  [EventType.CONTEXT_USAGE]: (chat, data) => {
    chat.meter.showUsage(data);
    return chat.trimNotices.refresh();
  },
  [EventType.CONTEXT_TRIMMED]: (chat, data) => {
    if (chat.timeline.addTrimNotice(data)) showSnackbar(getText("trimmed"));
    return chat.trimNotices.refresh();
  },
  [EventType.COMPACTION_STARTED]: (chat, data) => {
    chat.longChatNote.hide();
    chat.runStatus.begin({
      id: data.run,
      startedAt: Date.parse(data.at),
      expectedSeconds: data.expected_seconds,
      count: data.targets,
    });
  },
  [EventType.COMPACTION_PROGRESS]: (chat, data) => chat.runStatus.progress(data),
  [EventType.COMPACTION_APPLIED]: (chat, data) => chat.onCompactionApplied(data),
  [EventType.COMPACTION_SKIPPED]: (chat, data) => chat.onCompactionSkipped(data),
  [EventType.COMPACTION_FAILED]: (chat, data) => chat.onCompactionFailed(data),
  [EventType.SESSION_UPDATED]: (chat, data) => chat.onSessionUpdated(data),
  [EventType.EVENTS_DROPPED]: (chat) => chat.onEventsDropped(),
};

customElements.define("chat-stream", ChatStream);
