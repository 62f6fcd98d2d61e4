// Sending a file up, with how far it is: what fetch cannot tell.

import { csrf, Problem, signedOut } from "./api.js";
import { say } from "./words.js";

// What the server made of the file. `progress` is called with 0 to 1; aborting the signal ends it.
export function upload(session, file, { progress, signal }) {
  const request = new XMLHttpRequest();
  const form = new FormData();
  form.append("file", file, file.name || "file");
  return new Promise((resolve, reject) => {
    request.upload.addEventListener(
      "progress",
      (event) => event.lengthComputable && progress(event.loaded / event.total),
    );
    request.addEventListener("load", () =>
      request.status === 201 ? resolve(request.response) : reject(refusal(request)),
    );
    for (const name of ["error", "abort", "timeout"])
      request.addEventListener(name, () => reject(new Problem(0, say("offline"))));
    signal.addEventListener("abort", () => request.abort());
    request.open("POST", `/api/v1/sessions/${session}/attachments`);
    request.responseType = "json";
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("X-CSRFToken", csrf());
    request.send(form);
  });
}

function refusal({ status, response }) {
  if (status === 401) return signedOut();
  const errors = Array.isArray(response?.errors) ? response.errors : [];
  const details = errors
    .map((error) => error.detail)
    .filter(Boolean)
    .join(" ");
  return new Problem(status, details || response?.detail || response?.title || `HTTP ${status}`);
}
