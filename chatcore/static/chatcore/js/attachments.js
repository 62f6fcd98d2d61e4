// Attach files to the message being written: chosen, dropped or pasted, and uploaded at once.

import { callApi, Problem } from "./api.js";
import { loadItem, onItemChangedElsewhere, saveItem } from "./browser_storage.js";
import { buildPath } from "./paths.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";
import { makePhotographFit } from "./photographs.js";
import { uploadFile, uploadForm } from "./upload.js";

const MAX_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 20;

export class Attachments {
  #entries = []; // {name, size, type, file?, id?, chip, sending?, problem?, abortController?}

  constructor(chat, composer) {
    this.chat = chat;
    this.composer = composer;
    this.list = composer.form.querySelector(".chips");
    const input = composer.form.querySelector("input[type=file]");
    composer.form.querySelector(".attach").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = "";
    });
    composer.field.addEventListener("paste", (event) => this.#onPaste(event));
    this.#listenForDrops();
    this.#restore();
  }

  get hasFiles() {
    return this.#entries.length > 0;
  }

  get names() {
    return this.#entries.map((entry) => entry.name);
  }

  async add(chosenFiles) {
    for (const chosen of [...chosenFiles])
      this.#addFile(await makePhotographFit(chosen, MAX_BYTES));
    this.#beginUploads();
  }

  // Attach a text as a file. Return null if it was refused, else a function that takes it back and
  // returns whether it was still there.
  addText(text) {
    const count = this.names.filter((name) => name.startsWith("pasted")).length;
    const name = count ? `pasted ${count + 1}.txt` : "pasted.txt";
    const entry = this.#addFile(new File([text], name, { type: "text/plain" }), true);
    this.#beginUploads();
    const takeBack = () => {
      const isThere = this.#entries.includes(entry);
      if (isThere) this.#removeEntry(entry);
      return isThere;
    };
    return entry && takeBack;
  }

  // The changed text takes the place of the file.
  async #editText(entry) {
    const { editText } = await import("./text_dialogs.js");
    const text = await editText(this.chat, await entry.file.text());
    if (text === null || !this.#entries.includes(entry)) return;
    this.#removeEntry(entry);
    if (text) this.addText(text);
  }

  #addFile(file, isPasted = false) {
    if (file.size > MAX_BYTES) showSnackbar(getText("fileTooLarge", { name: file.name }));
    else if (this.#entries.length >= MAX_FILES)
      showSnackbar(getText("tooManyFiles", { count: MAX_FILES }));
    else {
      const name = file.name || getText("pastedFile");
      return this.#addEntry({ name, size: file.size, type: file.type, file, isPasted });
    }
    return null;
  }

  #beginUploads() {
    if (this.chat.session) for (const entry of this.#entries) this.#ensureUpload(entry);
    else for (const entry of this.#entries) this.#inspect(entry);
    this.#onChange();
  }

  // Say on each chip what the model will read of its file, with the other files and this model.
  async describe() {
    if (!this.chat.session) {
      for (const entry of this.#entries) {
        delete entry.inspected;
        this.#inspect(entry);
      }
      return;
    }
    if (!this.#entries.some((entry) => entry.id)) return;
    const path = `sessions/${this.chat.session}/attachments`;
    const { results } = await callApi("GET", path).catch(() => ({ results: [] }));
    for (const facts of results) {
      const entry = this.#entries.find(({ id }) => id === facts.id);
      if (entry) showFacts(entry, facts);
    }
  }

  // A file of a chat that does not exist yet is looked at only.
  async #inspect(entry) {
    if (entry.inspected || !entry.file || entry.type.startsWith("image/")) return;
    entry.inspected = true;
    const model = this.chat.model ? `?model=${encodeURIComponent(this.chat.model)}` : "";
    try {
      const facts = await uploadForm(`attachments/inspect${model}`, entry.file);
      if (!entry.id) showFacts(entry, facts);
    } catch (problem) {
      if (problem.status !== 400) return;
      entry.chip.dataset.failed = "";
      entry.chip.querySelector(".file-size").textContent = problem.message;
    }
  }

  // Upload all files and return their ids. Throw the problem of the first one that failed.
  async uploadAll(session) {
    await Promise.all(this.#entries.map((entry) => this.#ensureUpload(entry, session)));
    const failed = this.#entries.find((entry) => entry.problem);
    if (failed)
      throw new Problem(
        failed.problem.status,
        getText("fileFailed", { name: failed.name, why: failed.problem.message }),
      );
    return this.#entries.map((entry) => entry.id);
  }

  // Return the files and forget them here.
  takeFiles() {
    const files = this.#entries.map(({ id, name, size, type }) => ({ id, name, size, type }));
    this.#clear();
    return files;
  }

  // The chat that they were uploaded to is gone: they are uploaded to the next one.
  forgetUploads() {
    for (const entry of this.#entries.filter(({ file }) => file)) {
      delete entry.id;
      delete entry.sending;
    }
    this.#onChange();
  }

  restoreFiles(files) {
    for (const file of files) this.#addEntry(file);
    this.#onChange();
  }

  #clear() {
    this.#entries = [];
    this.list.replaceChildren();
    this.#onChange();
  }

  #addEntry(entry) {
    const [chip] = this.chat.timeline.cloneTemplate("chip-template");
    chip.querySelector(".file-name").textContent = entry.name;
    showFacts({ ...entry, chip }, { media_type: entry.type });
    if (/^image\/(png|jpeg|gif|webp)$/.test(entry.type)) showThumbnail(chip, entry);
    const remove = chip.querySelector("[data-remove]");
    remove.setAttribute("aria-label", getText("removeFile", { name: entry.name }));
    remove.addEventListener("click", () => this.#removeEntry(entry));
    const edit = chip.querySelector("[data-edit]");
    edit.hidden = !entry.isPasted;
    edit.addEventListener("click", () => this.#editText(entry));
    entry.chip = chip;
    this.#entries.push(entry);
    this.list.append(chip);
    return entry;
  }

  // Upload each file once. Try again only when the server could not be reached.
  #ensureUpload(entry, session = this.chat.session) {
    if (entry.id || (entry.problem && entry.problem.status !== 0)) return null;
    if (entry.problem) delete entry.sending;
    entry.sending ??= this.#upload(entry, session);
    return entry.sending;
  }

  async #upload(entry, session) {
    delete entry.problem;
    delete entry.chip.dataset.failed;
    entry.abortController = new AbortController();
    entry.chip.dataset.sending = "";
    const progress = (part) => entry.chip.style.setProperty("--done", part);
    try {
      const stored = await uploadFile(session, entry.file, {
        progress,
        signal: entry.abortController.signal,
      });
      entry.id = stored.id;
      entry.type = stored.media_type;
      showFacts(entry, stored);
      if (!stored.media_type.startsWith("image/")) this.describe();
    } catch (problem) {
      if (entry.abortController.signal.aborted) return;
      entry.problem = problem;
      this.#showFailure(entry);
    }
    delete entry.chip.dataset.sending;
    this.#onChange();
  }

  #showFailure({ chip, name, problem }) {
    chip.dataset.failed = "";
    chip.querySelector(".file-size").textContent = problem.message;
    showSnackbar(getText("fileFailed", { name, why: problem.message }));
  }

  #removeEntry(entry) {
    this.#entries = this.#entries.filter((other) => other !== entry);
    entry.chip.remove();
    entry.abortController?.abort();
    // The server deletes unused files after a day.
    if (entry.id)
      callApi("DELETE", `attachments/${entry.id}`)
        .then(() => this.describe()) // the others have more room
        .catch((problem) => console.warn(problem));
    this.#onChange();
    this.composer.field.focus();
  }

  // Word processors paste an image of the text together with the text. Only the text is wanted
  // then.
  #onPaste(event) {
    const { files, types } = event.clipboardData;
    if (this.composer.longText.takePaste(event)) return;
    if (!files.length || types.includes("text/plain")) return;
    event.preventDefault();
    this.add(files);
  }

  #listenForDrops() {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    const setDropping = (yes) => this.chat.toggleAttribute("data-dropping", yes);
    this.chat.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setDropping(true);
    });
    this.chat.addEventListener(
      "dragleave",
      ({ relatedTarget }) => this.chat.contains(relatedTarget) || setDropping(false),
    );
    this.chat.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setDropping(false);
      this.add(event.dataTransfer.files);
      this.composer.field.focus();
    });
  }

  #onChange() {
    this.list.hidden = !this.hasFiles;
    this.composer.updateButtons();
    saveItem("files", this.chat.session, this.#storedFiles);
  }

  // The uploaded files, which can be shown again after a reload; null when there are none.
  get #storedFiles() {
    const stored = this.#entries
      .filter((entry) => entry.id)
      .map(({ id, name, size, type }) => ({ id, name, size, type }));
    return stored.length ? stored : null;
  }

  #restore() {
    for (const entry of loadItem("files", this.chat.session) ?? []) this.#addEntry(entry);
    this.list.hidden = !this.hasFiles;
    this.describe();
    onItemChangedElsewhere("files", this.chat, (now, before) => {
      if (JSON.stringify(this.#storedFiles) !== JSON.stringify(before)) return;
      this.#clear();
      this.restoreFiles(now ?? []);
    });
  }
}

function showThumbnail(chip, { id, file }) {
  const image = document.createElement("img");
  image.alt = "";
  image.src = id ? buildPath(`api/v1/attachments/${id}`) : URL.createObjectURL(file);
  if (!id) image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
  chip.querySelector("svg").replaceWith(image);
}

// Show the size of a file, and what a person should know of it before it is sent.
function showFacts({ chip, size }, { media_type = "", excerpt = null }) {
  const [, charset = ""] = media_type.match(/; charset=(\S+)/) ?? [];
  const facts = [
    formatSize(size),
    charset && getText("readAs", { encoding: charset }),
    excerpt && describeExcerpt(excerpt),
  ].filter(Boolean);
  chip.querySelector(".file-size").textContent = facts.join(" · ");
  chip.toggleAttribute("data-told", facts.length > 1);
}

function describeExcerpt({ unit, shown, total }) {
  if (total === null) return getText("noTextToRead");
  if (!shown) return getText("nothingIsRead");
  const key = unit === "page" ? "firstPagesRead" : "firstPartRead";
  const format = new Intl.NumberFormat(document.documentElement.lang);
  const percent = new Intl.NumberFormat(document.documentElement.lang, { style: "percent" });
  return getText(key, {
    shown: format.format(shown),
    total: format.format(total),
    part: percent.format(shown / total),
  });
}

function formatSize(bytes) {
  const unit = bytes < 1024 ? "byte" : bytes < 1024 * 1024 ? "kilobyte" : "megabyte";
  const number = bytes / { byte: 1, kilobyte: 1024, megabyte: 1024 * 1024 }[unit];
  const format = {
    style: "unit",
    unit,
    unitDisplay: unit === "byte" ? "long" : "short",
    maximumFractionDigits: number < 10 && unit !== "byte" ? 1 : 0,
  };
  return new Intl.NumberFormat(document.documentElement.lang, format).format(number);
}
