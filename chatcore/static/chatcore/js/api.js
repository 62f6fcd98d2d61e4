// Send requests to this server: the REST API in JSON, and parts of pages in HTML.

import { buildPath } from "./paths.js";
import { getText } from "./texts.js";

const SIGN_IN_PATH = buildPath("login/");
// Texts of problems that pass by themselves, by the problem's type or the status of a page.
const OUTAGE_TEXTS = {
  overloaded: "overloaded",
  too_many_turns: "tooManyTurns",
  database_unavailable: "databaseUnavailable",
  storage_full: "storageFull",
  413: "tooLargeForProxy",
  503: "databaseUnavailable",
  507: "storageFull",
};

// A proxy says so when the server behind it is away or starts again.
const GATEWAY_STATUSES = [502, 504];

// An error of a request. `status` is 0 when the server could not be reached. `errors` is a list of
// {field, detail}. `repeated` is true when the same request is already running.
export class Problem extends Error {
  constructor(status, detail, { errors = [], type = "", repeated = false } = {}) {
    super(detail);
    Object.assign(this, { status, errors, type, repeated });
  }
}

// Read the token from the cookie, because every sign-in replaces it, also in another tab. The page
// holds a copy for servers that hide the cookie from scripts.
export function getCsrfToken() {
  const { csrf, csrfCookie } = document.body.dataset;
  const cookie = document.cookie.split("; ").find((text) => text.startsWith(`${csrfCookie}=`));
  return cookie?.slice(csrfCookie.length + 1) || csrf;
}

export const isSignInUrl = (url) => new URL(url, location.href).pathname === SIGN_IN_PATH;

export function reportSignedOut() {
  document.dispatchEvent(new Event("signed-out"));
  return new Problem(401, getText("signedOut"));
}

async function sendRequest(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Problem(0, getText("offline"));
  }
  if (response.status === 401 || (response.redirected && isSignInUrl(response.url)))
    throw reportSignedOut();
  if (!response.ok) throw createProblem(response.status, await response.json().catch(() => null));
  return response;
}

// Return the problem of a refused request. `body` is what the server says about it; a proxy in front
// of it says nothing that a person could read.
export function createProblem(status, body) {
  const problem = body ?? {};
  if (!problem.type && GATEWAY_STATUSES.includes(status)) return new Problem(0, getText("offline"));
  const errors = Array.isArray(problem.errors) ? problem.errors : [];
  const fields = errors
    .map((error) => error.detail ?? error.message)
    .filter(Boolean)
    .join(" ");
  const outage = OUTAGE_TEXTS[problem.type] ?? (problem.type ? "" : OUTAGE_TEXTS[status]);
  return new Problem(
    status,
    outage ? getText(outage) : fields || problem.detail || problem.title || `HTTP ${status}`,
    { ...problem, errors },
  );
}

// Send a JSON file as it is.
export async function postFile(path, file, type = "application/json") {
  const headers = {
    Accept: "application/json",
    "Content-Type": type,
    "X-CSRFToken": getCsrfToken(),
  };
  return (
    await sendRequest(buildPath(`api/v1/${path}`), { method: "POST", headers, body: file })
  ).json();
}

// Ask a page's view for something that comes as an event. It is read to its end, because a browser
// ends a request whose answer nobody reads.
export async function requestWork(path) {
  const headers = { "X-CSRFToken": getCsrfToken() };
  await (await sendRequest(path, { method: "POST", headers })).text();
}

export async function callApi(method, path, body, headers = {}, options = {}) {
  const response = await sendRequest(buildPath(`api/v1/${path}`), {
    ...options,
    method,
    headers: {
      Accept: "application/json",
      "Content-Type": "application/json",
      "X-CSRFToken": getCsrfToken(),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return response.status === 204 ? null : response.json();
}

// Fetch a sentence of a page's view; empty if it has nothing to say.
export async function fetchText(path) {
  return (await sendRequest(path, {})).text();
}

// Fetch HTML from the server and return its elements. The template has escaped it, and scripts in
// it do not run.
export async function fetchElements(path) {
  const response = await sendRequest(path, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return [...page.body.children].map((element) => document.adoptNode(element));
}
