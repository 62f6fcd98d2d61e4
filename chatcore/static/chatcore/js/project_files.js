// The files of a project: they are uploaded one after the other, then the list is loaded again.

import { uploadForm } from "./upload.js";

class ProjectFiles extends HTMLElement {
  connectedCallback() {
    const input = this.querySelector("input[type=file]");
    input.addEventListener("change", () => this.#upload([...input.files]));
  }

  async #upload(files) {
    const refusals = [];
    this.setAttribute("aria-busy", "true");
    for (const file of files)
      await uploadForm(`projects/${this.dataset.project}/files`, file).catch((problem) =>
        refusals.push(`${file.name}: ${problem.message}`),
      );
    document.addEventListener("htmx:afterSettle", () => showRefusals(refusals), { once: true });
    this.querySelector("[data-reload]").dispatchEvent(new Event("reload"));
  }
}

// In the list that was loaded in the place of the former one.
function showRefusals(refusals) {
  const text = document.querySelector("project-files [role=alert]");
  text.textContent = refusals.join(" ");
  text.hidden = !refusals.length;
  document.getElementById("project-upload").focus();
}

customElements.define("project-files", ProjectFiles);
