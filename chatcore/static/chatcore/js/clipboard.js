// Copy a text and confirm it on the button.

import { getText } from "./texts.js";

const FEEDBACK_MS = 3000;

export async function copyText(button, text) {
  await navigator.clipboard.writeText(text);
  button.dataset.copied = "";
  if (!button.querySelector("svg")) button.textContent = getText("copied");
  setTimeout(() => {
    delete button.dataset.copied;
    if (!button.querySelector("svg")) button.textContent = getText("copy");
  }, FEEDBACK_MS);
}
