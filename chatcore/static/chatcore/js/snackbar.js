// A short word at the bottom of the page, which goes away by itself; with an act, it waits longer, and while it is pointed at.

const SHOWN_MS = 5000;
const bar = document.getElementById("snackbar");
let timer;
let shownMs;
let closed = () => {};

export function snackbar(text) {
  show(text, SHOWN_MS);
}

// With a button: `act` when it is pressed, `close` when the word has gone without it.
export function offer(text, { label, act, close, shownFor }) {
  show(text, shownFor);
  closed = close;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", () => {
    closed = () => {};
    hide();
    act();
  });
  bar.append(button);
}

function show(text, shownFor) {
  hide();
  bar.textContent = text;
  bar.dataset.shown = "";
  shownMs = shownFor;
  wait();
}

function wait() {
  clearTimeout(timer);
  timer = setTimeout(hide, shownMs);
}

for (const name of ["pointerenter", "focusin"])
  bar.addEventListener(name, () => clearTimeout(timer));
for (const name of ["pointerleave", "focusout"])
  bar.addEventListener(name, () => "shown" in bar.dataset && wait());

function hide() {
  clearTimeout(timer);
  delete bar.dataset.shown;
  bar.querySelector("button")?.remove();
  const tell = closed;
  closed = () => {};
  tell();
}
