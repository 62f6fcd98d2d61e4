// Have a summary that failed written by another model, for this one time.

import { callApi } from "./api.js";

const FAILED = ["fell_back", "failed"];

export class OtherModel {
  constructor(chat) {
    this.chat = chat;
    this.dialog = document.getElementById("dialog");
    chat.addEventListener(
      "click",
      ({ target }) => target.closest("[data-other-model]") && this.#open(),
    );
  }

  async #open() {
    const failedRun = await this.#loadFailedRun();
    const [form] = this.chat.timeline.cloneTemplate("other-model-template");
    const field = form.querySelector("select");
    const models = [...field.options].map(({ value }) => value);
    field.value = models.find((name) => name !== (failedRun?.model ?? this.chat.model));
    form.addEventListener("submit", () => {
      this.chat.runStatus.hide();
      const focus = failedRun?.instructions;
      this.chat.meter.requestCompaction({
        summary_model: field.value,
        ...(focus && { instructions: focus }),
      });
    });
    this.dialog.replaceChildren(form);
    this.dialog.showModal();
  }

  // Without it the choice only begins at another model.
  async #loadFailedRun() {
    const path = `sessions/${this.chat.session}/compactions?limit=1`;
    const [newest] = (await callApi("GET", path).catch(() => null))?.results ?? [];
    return FAILED.includes(newest?.status) ? newest : null;
  }
}
