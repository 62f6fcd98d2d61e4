// Requests to this server: JSON of the REST API, and pieces of pages as the server renders them.

import { say } from "./words.js";

const SIGN_IN = "/login/";

// `status` is 0 when the server was not reached; `errors` are [{field, detail}]; `repeated`, what was asked runs already.
export class Problem extends Error {
  constructor(status, detail, { errors = [], type = "", repeated = false } = {}) {
    super(detail);
    Object.assign(this, { status, errors, type, repeated });
  }
}

// The cookie's, which is new after every signing in, also in another tab; the page's where scripts may not read it.
export function csrf() {
  return document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1] ?? document.body.dataset.csrf;
}

export const leadsToSignIn = (url) => new URL(url, location.href).pathname === SIGN_IN;

export function signedOut() {
  document.dispatchEvent(new Event("signed-out"));
  return new Problem(401, say("signedOut"));
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Problem(0, say("offline"));
  }
  if (response.status === 401 || (response.redirected && leadsToSignIn(response.url)))
    throw signedOut();
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  const errors = Array.isArray(problem.errors) ? problem.errors : [];
  const fields = errors
    .map((error) => error.detail ?? error.message)
    .filter(Boolean)
    .join(" ");
  return new Problem(
    response.status,
    fields || problem.detail || problem.title || `HTTP ${response.status}`,
    { ...problem, errors },
  );
}

// A JSON file as it is.
export async function send(path, file) {
  const headers = {
    Accept: "application/json",
    "Content-Type": "application/json",
    "X-CSRFToken": csrf(),
  };
  return (await ask(`/api/v1/${path}`, { method: "POST", headers, body: file })).json();
}

export async function api(method, path, body, headers = {}, options = {}) {
  const response = await ask(`/api/v1/${path}`, {
    ...options,
    method,
    headers: {
      Accept: "application/json",
      "Content-Type": "application/json",
      "X-CSRFToken": csrf(),
      ...headers,
    },
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
