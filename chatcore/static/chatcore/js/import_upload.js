// Send the files of an export, small ones at once and large ones in pieces, and open what came of it.

import { callApi, getCsrfToken, postFile, Problem, createProblem } from "./api.js";
import { buildPath } from "./paths.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const SMALL_BYTES = 500_000;
const PIECE_BYTES = 2_000_000;
const RETRY_MS = [1000, 2000, 5000, 10_000, 20_000];
const STORAGE_KEY = "import"; // the import that these files belong to, to go on where it was
const HEAD_BYTES = 4096;
const OWN_FORMAT = "chatcore-session-1";

// Return the path of the page that shows what came: a chat, or the import.
export async function importFiles(files) {
  const [file] = files;
  if (files.length === 1 && file.size <= SMALL_BYTES) return importSmallFile(file);
  const id = await sendInPieces(files);
  localStorage.removeItem(STORAGE_KEY);
  return `imports/${id}/`;
}

async function importSmallFile(file) {
  const head = (await file.slice(0, HEAD_BYTES).text()).trimStart();
  if (head.startsWith("{") && head.slice(0, 200).includes(OWN_FORMAT))
    return `c/${(await postFile("sessions/import", file)).id}/`;
  const type = head.startsWith("PK") ? "application/zip" : "application/octet-stream";
  const name = encodeURIComponent(file.name);
  const result = await postFile(`imports?name=${name}`, file, type);
  const isOneWholeChat = result.came === 1 && !result.partly && !result.refused && !result.known;
  return isOneWholeChat ? `c/${result.sessions[0].id}/` : `imports/${result.id}/`;
}

async function sendInPieces(files) {
  const upload = (await findUpload(files)) ?? (await beginUpload(files));
  const total = files.reduce((sum, file) => sum + file.size, 0);
  let sent = upload.files.reduce((sum, stored) => sum + stored.received, 0);
  for (const [index, stored] of upload.files.entries()) {
    let offset = stored.received;
    while (offset < stored.size) {
      const piece = files[index].slice(offset, offset + PIECE_BYTES);
      await sendPiece(upload.id, stored.id, offset, piece);
      offset += piece.size;
      sent += piece.size;
      showSnackbar(getText("importSent", { percent: Math.floor((100 * sent) / total) }));
    }
  }
  return upload.id;
}

const describeFiles = (files) =>
  JSON.stringify(files.map(({ name, size, lastModified }) => [name, size, lastModified]));

async function beginUpload(files) {
  const names = files.map(({ name, size }) => ({ name: name.slice(-255), size }));
  const upload = await callApi("POST", "imports/uploads", { files: names });
  localStorage.setItem(STORAGE_KEY, JSON.stringify([describeFiles(files), upload.id]));
  return upload;
}

// Return the upload of the same files that was broken off, if the server still has it.
async function findUpload(files) {
  const [description, id] = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "[]");
  if (description !== describeFiles(files)) return null;
  try {
    const upload = await callApi("GET", `imports/${id}`);
    return upload.status === "receiving" ? upload : null;
  } catch {
    return null;
  }
}

async function sendPiece(id, fileId, offset, piece) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await putPiece(`imports/${id}/files/${fileId}?offset=${offset}`, piece);
    } catch (problem) {
      // One that came without its answer being heard is there already.
      if (problem.status === 409 && attempt) return null;
      if ((problem.status && problem.status < 500) || attempt >= RETRY_MS.length) throw problem;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[attempt]));
    }
  }
}

async function putPiece(path, piece) {
  let response;
  try {
    response = await fetch(buildPath(`api/v1/${path}`), {
      method: "PUT",
      credentials: "same-origin",
      headers: { "Content-Type": "application/octet-stream", "X-CSRFToken": getCsrfToken() },
      body: piece,
    });
  } catch {
    throw new Problem(0, getText("offline"));
  }
  if (!response.ok) throw createProblem(response.status, await response.json().catch(() => null));
}
