// A short word at the bottom of the page, which goes away by itself.

const SHOWN_MS = 5000;
const bar = document.getElementById("snackbar");
let timer;

export function snackbar(text) {
  clearTimeout(timer);
  bar.textContent = text;
  bar.dataset.shown = "";
  timer = setTimeout(() => delete bar.dataset.shown, SHOWN_MS);
}
