// Manage the messages on the page: find and add them, fill the streaming one, and keep the scroll
// position.

import { fetchElements } from "./api.js";
import { formatCount, formatElapsed } from "./formats.js";
import { getMarkdownView } from "./markdown.js";
import { recordMarkup } from "./message_merge.js";
import { MessagePager } from "./message_pager.js";
import { buildPath } from "./paths.js";
import { StreamedText } from "./streamed_text.js";
import { getText } from "./texts.js";

const END_DISTANCE = 64; // pixels
// What the policies store; the page says it in the reader's language (templatetags/chat.py).
const STORED_NOTICE = "Conversation history has been automatically trimmed";

export class Timeline {
  #streams = new Map(); // "message:kind" → StreamedText
  #incomplete = new Set(); // messages with a missing delta
  #completed = new Set(); // messages that have ended while this page was open
  #isAtEnd = true;
  #lastScrollTop = 0; // the previous scroll position

  constructor(chat) {
    this.chat = chat;
    this.list = chat.querySelector(".timeline");
    this.scroller = chat.querySelector(".scroll");
    this.toEnd = chat.querySelector(".to-end");
    this.pager = new MessagePager(this);
    this.renderMarkdown(this.list);
    this.#watchScrolling();
  }

  findMessage(id) {
    return this.pager.findMessage(id);
  }

  // Render the markdown of messages that the server sent. It may have sent one as streaming whose
  // end came before this did: nothing more follows, so the message is fetched again.
  renderMarkdown(root) {
    recordMarkup(root);
    for (const prose of root.querySelectorAll(
      ".answer:not([data-status=streaming]) > .prose:not([data-shown])",
    ))
      getMarkdownView(prose).showFinal(prose.textContent);
    for (const answer of root.querySelectorAll(".answer[data-status=streaming]"))
      if (this.#completed.has(answer.dataset.message))
        this.#renew(answer).catch((problem) => console.warn(problem));
      else this.#showStreamedText(answer);
  }

  async #renew(article) {
    const path = `c/${this.chat.session}/messages/${article.dataset.message}/`;
    article.replaceWith(...(await fetchElements(buildPath(path))));
    this.renderMarkdown(this.list);
  }

  // Load the messages again: versions and texts may have changed, messages may be deleted.
  reload() {
    return this.pager.reload();
  }

  // Show what is being sent until it is stored.
  showEcho(content, fileNames) {
    const [echo] = this.cloneTemplate("echo-template");
    const words = echo.querySelector(".words");
    words.textContent = content;
    words.hidden = !content;
    echo.querySelector(".echo-files").textContent = fileNames.join(", ");
    this.removeEcho();
    this.chat.querySelector(".welcome")?.setAttribute("hidden", "");
    this.chat.querySelector(".tail").prepend(echo);
    this.followEnd();
  }

  removeEcho() {
    this.chat.querySelector(".echo")?.remove();
    const isEmpty = !this.chat.session && !this.list.children.length;
    this.chat.querySelector(".welcome")?.toggleAttribute("hidden", !isEmpty);
  }

  // Add a message that was stored. An answer begins empty; any other message is fetched as HTML.
  async addMessage(session, data) {
    if (data.role === "tool") return;
    const { message } = data;
    await this.pager.whenIdle;
    if (this.findMessage(message)) return;
    const elements =
      data.role === "assistant"
        ? this.#createAnswer(data)
        : await fetchElements(buildPath(`c/${session}/messages/${message}/`));
    await this.pager.whenIdle;
    if (data.role === "user") this.removeEcho();
    if (!this.#isAtEnd) this.toEnd.dataset.news = "";
    // It is loaded later, together with the newest messages.
    if (!this.pager.hasNewest || this.findMessage(message)) return;
    for (const element of elements) this.#insertBySeq(element);
    this.pager.trim();
    if (data.recalled) await this.#addRecalled(session, message);
  }

  // Fetch the line that names what the turn brought back; only its first answer has one.
  async #addRecalled(session, message) {
    const [rendered] = await fetchElements(buildPath(`c/${session}/messages/${message}/`));
    const recalled = rendered.querySelector(".recalled");
    const answer = this.findMessage(message);
    if (!recalled || !answer || answer.querySelector(".recalled")) return;
    answer.querySelector(".reasoning").before(recalled);
  }

  #createAnswer({ message, message_seq: seq, turn, replaces, left_out: leftOut }) {
    const [answer] = this.cloneTemplate("answer-template");
    Object.assign(answer.dataset, { message, seq, turn });
    if (replaces) answer.dataset.replaces = replaces;
    this.#showTrimming(answer, leftOut);
    answer.querySelector("local-time").setAttribute("datetime", new Date().toISOString());
    return [answer];
  }

  // Say from the first word on that older messages are not in the request of this answer. The
  // template has the text for a request in which only results of tools were shortened.
  #showTrimming(answer, leftOut) {
    const line = answer.querySelector(".trimmed-answer");
    line.hidden = leftOut === undefined;
    if (leftOut) line.textContent = getText("answeredWithout", { count: leftOut });
  }

  #insertBySeq(element) {
    const seq = Number(element.dataset.seq ?? 0);
    const after =
      seq &&
      [...this.list.querySelectorAll("[data-seq]")].find(
        (other) => Number(other.dataset.seq) > seq,
      );
    if (after) after.before(element);
    else this.list.append(element);
  }

  // Keep the deltas of a message that is not on the page until it is loaded.
  appendDelta(kind, { message, offset, text }) {
    const article = this.findMessage(message);
    if (article && article.dataset.status !== "streaming") return;
    const key = `${message}:${kind}`;
    if (!this.#streams.has(key)) this.#streams.set(key, new StreamedText());
    if (!this.#streams.get(key).append(offset, text)) this.#incomplete.add(message);
    if (article) this.#showStreamedText(article);
  }

  #showStreamedText(article) {
    const [reasoning, text] = ["reasoning", "text"].map(
      (kind) => this.#streams.get(`${article.dataset.message}:${kind}`)?.text,
    );
    if (reasoning) this.#showReasoning(article, reasoning, { isOver: Boolean(text) });
    if (text) getMarkdownView(article.querySelector(".prose")).showPartial(text);
  }

  // Say how long the model thinks, and then how long it has thought.
  #showReasoning(article, text, { isOver }) {
    const fold = article.querySelector(".reasoning");
    const words = fold.querySelector(".words");
    fold.hidden = false;
    if ("over" in fold.dataset) return;
    fold.dataset.since ??= Date.now();
    const time = formatElapsed(Date.now() - fold.dataset.since);
    fold.toggleAttribute("data-thinking", !isOver);
    fold.toggleAttribute("data-over", isOver);
    if (words.textContent !== text) words.textContent = text;
    fold.querySelector("summary span").textContent = getText(isOver ? "thought" : "thinking", {
      time,
    });
  }

  async completeMessage({ message, status, usage, finish_reason: finishReason }) {
    this.#completed.add(String(message));
    const article = this.findMessage(message);
    const text = this.#streams.get(`${message}:text`)?.text ?? "";
    for (const kind of ["text", "reasoning"]) this.#streams.delete(`${message}:${kind}`);
    const isIncomplete = this.#incomplete.delete(message);
    if (article?.dataset.status !== "streaming") return;
    const mayHaveSources = this.list.querySelector(
      `[data-turn="${CSS.escape(article.dataset.turn)}"] [data-tool="search_web"]`,
    );
    if (isIncomplete || article.dataset.replaces || mayHaveSources) return this.#renew(article);
    article.dataset.status = status;
    article.dataset.finish = finishReason ?? "";
    this.#endReasoning(article);
    getMarkdownView(article.querySelector(".prose")).showFinal(text);
    if (usage) this.#showFacts(article, usage);
  }

  // The model has called a tool, or was stopped, without a word after its thoughts.
  #endReasoning(article) {
    const fold = article.querySelector(".reasoning");
    if ("thinking" in fold.dataset)
      this.#showReasoning(article, fold.querySelector(".words").textContent, { isOver: true });
  }

  #showFacts(article, usage) {
    const answers = [...this.list.querySelectorAll(".answer")];
    const before = answers[answers.indexOf(article) - 1]?.querySelector(".fact-model").textContent;
    article.toggleAttribute("data-by-other", Boolean(before) && before !== this.chat.model);
    article.querySelector(".facts").hidden = false;
    article.querySelector(".fact-model").textContent = this.chat.model;
    article.querySelector(".fact-input").textContent = formatCount(usage.input);
    article.querySelector(".fact-output").textContent = formatCount(usage.output ?? 0);
  }

  addToolCall({ message, id, name, arguments: callArguments }) {
    const answer = this.findMessage(message);
    if (!answer || this.#findToolCall(id, answer)) return;
    const [call] = this.cloneTemplate("call-template");
    call.dataset.call = id;
    call.dataset.tool = name;
    call.querySelector(".call-name").textContent = name;
    call.querySelector(".call-arguments").textContent = formatJson(callArguments);
    answer.querySelector(".calls").append(call);
  }

  async completeToolCall(session, { message, id, is_error: failed }) {
    const call = this.pager.hasNewest && this.#findToolCall(id, this.list);
    if (!call || "done" in call.dataset) return;
    call.dataset.done = "";
    if (failed) call.dataset.error = "";
    call
      .querySelector(".call-result")
      .replaceChildren(...(await fetchElements(buildPath(`c/${session}/messages/${message}/`))));
  }

  // Return the newest call with this id. Some models number their calls anew in every answer.
  #findToolCall(id, root) {
    return [...root.querySelectorAll(`[data-call="${CSS.escape(id)}"]`)].at(-1);
  }

  addTrimNotice({ turn, notice }) {
    const questions = [...this.list.querySelectorAll(".user")];
    const question = turn && questions.filter((user) => user.dataset.turn === turn).at(-1);
    const next = question ? question.nextElementSibling : this.list.lastElementChild;
    if (next?.matches(".notice")) return false;
    const [line] = this.cloneTemplate("notice-template");
    const stored = notice || STORED_NOTICE;
    const isUsual = stored === STORED_NOTICE;
    line.querySelector(".visually-hidden").textContent = isUsual ? stored : "";
    line.querySelector(".notice-words").textContent = isUsual ? getText("trimmed") : stored;
    if (question) question.after(line);
    else if (this.pager.hasNewest) this.list.append(line);
    return true;
  }

  async addTurnError(session, { turn }) {
    const elements = await fetchElements(buildPath(`c/${session}/turns/${turn}/error/`));
    await this.pager.whenIdle;
    if (this.pager.hasNewest && !this.list.querySelector(`[data-error-of="${turn}"]`))
      this.list.append(...elements);
  }

  // Dim the messages that the model sees only as a summary.
  markCompacted(boundary) {
    for (const article of this.list.querySelectorAll("[data-seq]")) {
      if (Number(article.dataset.seq) < (boundary ?? 0)) article.dataset.compacted = "";
      else delete article.dataset.compacted;
    }
  }

  // Dot the line beside the messages that do not fit into the next request.
  markLeftOut(seqs) {
    const leftOut = new Set(seqs);
    for (const article of this.list.querySelectorAll("[data-seq]"))
      article.toggleAttribute("data-left-out", leftOut.has(Number(article.dataset.seq)));
  }

  cloneTemplate(id) {
    return [...document.getElementById(id).content.cloneNode(true).children];
  }

  // Scroll to a message, or to a range of its words, and do not follow the end any more.
  scrollToMessage(article, words) {
    this.#isAtEnd = false;
    article.scrollIntoView({ block: "center" });
    if (!words) return;
    const { top, height } = words.getBoundingClientRect();
    const view = this.scroller.getBoundingClientRect();
    this.scroller.scrollTop += top + height / 2 - view.top - view.height / 2;
  }

  // Go to the newest message and stay at the end.
  async followEnd() {
    if (!this.pager.hasNewest) await this.pager.loadPage();
    this.#isAtEnd = true;
    this.#scrollToEnd();
  }

  async #goToStart() {
    if (!this.pager.includesSeq(1)) await this.pager.loadPage("at=1");
    this.#isAtEnd = false;
    this.scroller.scrollTop = 0;
  }

  // Run a change and keep the visible messages where they are. Scroll anchoring does the same, but
  // not in every browser and not always.
  keepScrollPosition(change) {
    const { top } = this.scroller.getBoundingClientRect();
    const anchor = [...this.list.children].find(
      (each) => each.getBoundingClientRect().bottom > top,
    );
    const previousTop = anchor?.getBoundingClientRect().top;
    change();
    if (anchor?.isConnected)
      this.scroller.scrollTop += anchor.getBoundingClientRect().top - previousTop;
  }

  #scrollToEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  #watchScrolling() {
    const { scroller } = this;
    this.#isAtEnd = this.pager.hasNewest;
    scroller.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    this.toEnd.addEventListener("click", () => this.followEnd());
    // Whoever opens something wants to read it from its beginning.
    this.list.addEventListener("click", (event) => {
      if (event.target.closest("summary, [data-unfold]")) this.#isAtEnd = false;
    });
    document.addEventListener("keydown", (event) => this.#onKeyDown(event));
    const growth = new ResizeObserver(() => this.#isAtEnd && this.#scrollToEnd());
    growth.observe(this.list);
    growth.observe(scroller);
    if (this.#isAtEnd) this.#scrollToEnd();
    this.#onScroll();
  }

  // Only scrolling up leaves the end. The end also moves when an answer or the composer grows.
  #onScroll() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    if (scrollHeight - scrollTop - clientHeight < END_DISTANCE)
      this.#isAtEnd = this.pager.hasNewest;
    else if (scrollTop < this.#lastScrollTop) this.#isAtEnd = false;
    this.#lastScrollTop = scrollTop;
    if (this.toEnd.hidden !== this.#isAtEnd) this.toEnd.hidden = this.#isAtEnd;
    if (this.#isAtEnd) delete this.toEnd.dataset.news;
    this.pager.loadIfNearEdge();
  }

  #onKeyDown(event) {
    const keys = { End: () => this.followEnd(), Home: () => this.#goToStart() };
    const isIgnored =
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.shiftKey ||
      event.target.closest("input, textarea, select, pre, dialog, .menu");
    if (!(event.key in keys) || isIgnored) return;
    event.preventDefault();
    keys[event.key]();
  }
}

function formatJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
