// Files beside the message being written: chosen, dropped or pasted, sent up at once, and shown until they go with it.

import { api, Problem } from "./api.js";
import { keep, kept, whenKeptElsewhere } from "./keeping.js";
import { snackbar } from "./snackbar.js";
import { upload } from "./uploading.js";
import { say } from "./words.js";

const MAX_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 20;

export class Attaching {
  #files = []; // {name, size, type, file?, id?, chip, ended?, gone}

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
    composer.field.addEventListener("paste", (event) => this.#paste(event));
    this.#takeDrops();
    this.#restore();
  }

  get some() {
    return this.#files.length > 0;
  }

  add(files) {
    for (const file of files) {
      if (file.size > MAX_BYTES) snackbar(say("fileTooLarge", { name: file.name }));
      else if (this.#files.length >= MAX_FILES) snackbar(say("tooManyFiles", { count: MAX_FILES }));
      else
        this.#show({
          name: file.name || say("pastedFile"),
          size: file.size,
          type: file.type,
          file,
        });
    }
    if (this.chat.session) for (const each of this.#files) this.#send(each);
    this.#changed();
  }

  // The ids of all of them, once they are there. Throws what the first one that failed was refused with.
  async ids(session) {
    await Promise.all(this.#files.map((each) => this.#send(each, session)));
    const failed = this.#files.find((each) => each.problem);
    if (failed)
      throw new Problem(
        failed.problem.status,
        say("fileFailed", { name: failed.name, why: failed.problem.message }),
      );
    return this.#files.map((each) => each.id);
  }

  // Hand them over; they are no longer here.
  take() {
    const taken = this.#files.map(({ id, name, size, type }) => ({ id, name, size, type }));
    this.#clear();
    return taken;
  }

  give(files) {
    for (const file of files) this.#show(file);
    this.#changed();
  }

  #clear() {
    this.#files = [];
    this.list.replaceChildren();
    this.#changed();
  }

  #show(each) {
    const [chip] = this.chat.timeline.stamp("chip-piece");
    chip.querySelector(".file-name").textContent = each.name;
    chip.querySelector(".file-size").textContent = size(each.size);
    if (/^image\/(png|jpeg|gif|webp)$/.test(each.type)) picture(chip, each);
    chip.querySelector("button").setAttribute("aria-label", say("removeFile", { name: each.name }));
    chip.querySelector("button").addEventListener("click", () => this.#remove(each));
    each.chip = chip;
    this.#files.push(each);
    this.list.append(chip);
  }

  // Once for each file; again only when the server was not reached.
  #send(each, session = this.chat.session) {
    if (each.id || (each.problem && each.problem.status !== 0)) return null;
    if (each.problem) delete each.sending;
    each.sending ??= this.#upload(each, session);
    return each.sending;
  }

  async #upload(each, session) {
    delete each.problem;
    delete each.chip.dataset.failed;
    each.ended = new AbortController();
    each.chip.dataset.sending = "";
    const progress = (part) => each.chip.style.setProperty("--done", part);
    try {
      const stored = await upload(session, each.file, { progress, signal: each.ended.signal });
      each.id = stored.id;
      each.type = stored.media_type;
    } catch (problem) {
      if (each.ended.signal.aborted) return;
      each.problem = problem;
      this.#fail(each);
    }
    delete each.chip.dataset.sending;
    this.#changed();
  }

  #fail({ chip, name, problem }) {
    chip.dataset.failed = "";
    chip.querySelector(".file-size").textContent = problem.message;
    snackbar(say("fileFailed", { name, why: problem.message }));
  }

  #remove(each) {
    this.#files = this.#files.filter((other) => other !== each);
    each.chip.remove();
    each.ended?.abort();
    if (each.id) api("DELETE", `attachments/${each.id}`).catch((problem) => console.warn(problem)); // a day later it is gone anyway
    this.#changed();
    this.composer.field.focus();
  }

  // What comes with a text is a picture of it: the text is what was meant.
  #paste(event) {
    const { files, types } = event.clipboardData;
    if (!files.length || types.includes("text/plain")) return;
    event.preventDefault();
    this.add(files);
  }

  #takeDrops() {
    const has = (event) => event.dataTransfer?.types.includes("Files");
    const dropping = (yes) => this.chat.toggleAttribute("data-dropping", yes);
    this.chat.addEventListener("dragover", (event) => {
      if (!has(event)) return;
      event.preventDefault();
      dropping(true);
    });
    this.chat.addEventListener(
      "dragleave",
      ({ relatedTarget }) => this.chat.contains(relatedTarget) || dropping(false),
    );
    this.chat.addEventListener("drop", (event) => {
      if (!has(event)) return;
      event.preventDefault();
      dropping(false);
      this.add(event.dataTransfer.files);
      this.composer.field.focus();
    });
  }

  #changed() {
    this.list.hidden = !this.some;
    this.composer.changed();
    keep("files", this.chat.session, this.#stored);
  }

  // What is on the server and can be shown again; null for nothing.
  get #stored() {
    const there = this.#files
      .filter((each) => each.id)
      .map(({ id, name, size, type }) => ({ id, name, size, type }));
    return there.length ? there : null;
  }

  #restore() {
    for (const each of kept("files", this.chat.session) ?? []) this.#show(each);
    this.list.hidden = !this.some;
    whenKeptElsewhere("files", this.chat, (now, before) => {
      if (JSON.stringify(this.#stored) !== JSON.stringify(before)) return;
      this.#clear();
      this.give(now ?? []);
    });
  }
}

function picture(chip, { id, file }) {
  const image = document.createElement("img");
  image.alt = "";
  image.src = id ? `/api/v1/attachments/${id}` : URL.createObjectURL(file);
  if (!id) image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
  chip.querySelector("svg").replaceWith(image);
}

function size(bytes) {
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
