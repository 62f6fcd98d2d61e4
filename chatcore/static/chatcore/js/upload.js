// Upload a file and report the progress, which fetch cannot do.

import { getCsrfToken, Problem, reportSignedOut } from "./api.js";
import { buildPath } from "./paths.js";
import { getText } from "./texts.js";

// Return the stored attachment. `progress` is called with 0 to 1; the signal aborts the upload.
export const uploadFile = (session, file, options) =>
  uploadForm(`sessions/${session}/attachments`, file, options);

// Send a file to a path of the REST API and return what was made of it.
export function uploadForm(path, file, { progress = () => {}, signal } = {}) {
  const request = new XMLHttpRequest();
  const form = new FormData();
  form.append("file", file, file.name || "file");
  return new Promise((resolve, reject) => {
    request.upload.addEventListener(
      "progress",
      (event) => event.lengthComputable && progress(event.loaded / event.total),
    );
    request.addEventListener("load", () =>
      request.status === 201 ? resolve(request.response) : reject(createProblem(request)),
    );
    for (const name of ["error", "abort", "timeout"])
      request.addEventListener(name, () => reject(new Problem(0, getText("offline"))));
    signal?.addEventListener("abort", () => request.abort());
    request.open("POST", buildPath(`api/v1/${path}`));
    request.responseType = "json";
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("X-CSRFToken", getCsrfToken());
    request.send(form);
  });
}

function createProblem({ status, response }) {
  if (status === 401) return reportSignedOut();
  const errors = Array.isArray(response?.errors) ? response.errors : [];
  const details = errors
    .map((error) => error.detail)
    .filter(Boolean)
    .join(" ");
  return new Problem(status, details || response?.detail || response?.title || `HTTP ${status}`);
}
