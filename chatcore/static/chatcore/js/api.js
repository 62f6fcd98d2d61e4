// Requests to this server: JSON of the REST API, and pieces of pages as the server renders them.

import { say } from "./words.js";

export class Problem extends Error {
  constructor(status, detail, errors = []) {
    super(detail);
    this.status = status;
    this.errors = errors; // [{field, detail}]
  }
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Problem(0, say("offline"));
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  const errors = Array.isArray(problem.errors) ? problem.errors : [];
  const fields = errors.map((error) => error.detail ?? error.message).filter(Boolean).join(" ");
  return new Problem(response.status, fields || problem.detail || problem.title || `HTTP ${response.status}`, errors);
}

// A JSON file as it is.
export async function send(path, file) {
  const headers = { Accept: "application/json", "Content-Type": "application/json", "X-CSRFToken": document.body.dataset.csrf };
  return (await ask(`/api/v1/${path}`, { method: "POST", headers, body: file })).json();
}

export async function api(method, path, body, headers = {}, options = {}) {
  const response = await ask(`/api/v1/${path}`, {
    ...options,
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
