// Requests to this server: JSON of the REST API, and pieces of pages as the server renders them.

import { say } from "./words.js";

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Problem(0, say("offline"));
  }
  if (!response.ok) throw new Problem(response.status, await reason(response));
  return response;
}

async function reason(response) {
  const problem = await response.json().catch(() => ({}));
  const fields = (problem.errors ?? []).map?.((error) => error.detail ?? error.message).filter(Boolean).join(" ");
  return fields || problem.detail || problem.title || `HTTP ${response.status}`;
}

export async function api(method, path, body, headers = {}) {
  const response = await ask(`/api/v1/${path}`, {
    method,
    headers: { Accept: "application/json", "Content-Type": "application/json", "X-CSRFToken": document.body.dataset.csrf, ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return response.status === 204 ? null : response.json();
}

// Elements of a server-rendered piece, escaped by its template; scripts in it would stay inert.
export async function piece(path) {
  const response = await ask(path, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return [...page.body.children].map((element) => document.adoptNode(element));
}
