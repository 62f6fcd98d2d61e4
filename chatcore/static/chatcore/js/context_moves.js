// Undo and redo what was done to the context, and say what follows from it.

import { callApi } from "./api.js";
import { showSnackbar, showSnackbarWithAction } from "./snackbar.js";
import { getText } from "./texts.js";

const OFFER_MS = 12000; // long enough to read two sentences

// Move one step: "undo" or "redo". Raises the problem of the server.
export async function moveContext(chat, direction) {
  const history = await callApi("POST", `sessions/${chat.session}/context/${direction}`);
  const usage = await callApi("GET", `sessions/${chat.session}/context`);
  const opposite = direction === "undo" ? "redo" : "undo";
  const isPossible = { undo: history.can_undo, redo: history.can_redo };
  if (isPossible[opposite])
    showSnackbarWithAction(describeMove(direction, usage), {
      label: getText(opposite),
      action: () => tryToMove(chat, opposite),
      onDismiss: () => {},
      durationMs: OFFER_MS,
    });
  else showSnackbar(describeMove(direction, usage));
  await chat.refreshContext();
}

export async function tryToMove(chat, direction) {
  try {
    await moveContext(chat, direction);
  } catch (problem) {
    showSnackbar(getText("failed", { why: problem.message }));
  }
}

// What was undone may not fit the window any more; then the next message changes it again.
function describeMove(direction, usage) {
  const isOver = usage.should_compact && usage.automatic !== "off";
  const text = getText(direction === "undo" ? "undone" : "redone");
  return isOver ? `${text} ${getText("summarizedNext")}` : text;
}
