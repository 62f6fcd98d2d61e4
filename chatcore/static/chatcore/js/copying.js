// Copying, and saying on the button that it was done.

import { say } from "./words.js";

const COPIED_MS = 3000;

export async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  button.dataset.copied = "";
  if (!button.querySelector("svg")) button.textContent = say("copied");
  setTimeout(() => {
    delete button.dataset.copied;
    if (!button.querySelector("svg")) button.textContent = say("copy");
  }, COPIED_MS);
}
