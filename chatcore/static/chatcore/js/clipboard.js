// Copy a text and confirm it on the button.

import { getText } from "./texts.js";

const FEEDBACK_MS = 3000;

// Put a text into the clipboard; say so where that is not possible. Return whether it is there.
// Over plain HTTP, and without the permission, the browser has only the old way: a selected field.
export async function writeClipboard(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const isCopied = copySelected(button.closest("dialog[open]") ?? document.body, text);
    if (!isCopied) document.dispatchEvent(new Event("not-copied"));
    return isCopied;
  }
}

function copySelected(place, text) {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "visually-hidden";
  field.value = text;
  place.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  focused?.focus({ preventScroll: true });
  return isCopied;
}

export async function copyText(button, text) {
  if (!(await writeClipboard(button, text))) return false;
  button.dataset.copied = "";
  if (!button.querySelector("svg")) button.textContent = getText("copied");
  setTimeout(() => {
    delete button.dataset.copied;
    if (!button.querySelector("svg")) button.textContent = getText("copy");
  }, FEEDBACK_MS);
  return true;
}
