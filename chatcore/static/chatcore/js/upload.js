// Upload a file and report the progress, which fetch cannot do.

import { createProblem, getCsrfToken, Problem, reportSignedOut } from "./api.js";
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
    request.addEventListener("load", () => {
      const { status, response } = request;
      if (status === 200 || status === 201) resolve(response);
      else reject(status === 401 ? reportSignedOut() : createProblem(status, response));
    });
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
