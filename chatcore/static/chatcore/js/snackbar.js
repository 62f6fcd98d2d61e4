// Show a short message at the bottom of the page. It disappears after a while, but not under the
// mouse.

const DURATION_MS = 5000;
const GAP = 12; // pixels between the message and the composer
const bar = document.getElementById("snackbar");
let timer;
let currentDurationMs;
let onClose = () => {};

export function showSnackbar(text) {
  showText(text, DURATION_MS);
}

// Show a message with a button. `action` runs when it is pressed, `onDismiss` when the message
// disappears without that.
export function showSnackbarWithAction(text, { label, action, onDismiss, durationMs }) {
  showText(text, durationMs);
  onClose = onDismiss;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", () => {
    onClose = () => {};
    hide();
    action();
  });
  bar.append(button);
}

function showText(text, durationMs) {
  hide();
  bar.textContent = text;
  placeBesideDock();
  bar.dataset.shown = "";
  currentDurationMs = durationMs;
  startTimer();
}

// What is wrong with a file must not cover the file: the composer grows with what is in it. Nor may
// a message cover the heading of a new chat, below whose field is room, or a question of a tool.
function placeBesideDock() {
  const dock = document.querySelector(".dock");
  const { top, bottom } = dock?.getBoundingClientRect() ?? {};
  const question = document.querySelector(".approval")?.getBoundingClientRect().top;
  const roomBelow = innerHeight - bottom - 2 * GAP;
  bar.style.bottom = !dock
    ? ""
    : roomBelow > bar.offsetHeight
      ? `${GAP}px`
      : `${Math.max(0, innerHeight - Math.min(top, question ?? top)) + GAP}px`;
}

function startTimer() {
  clearTimeout(timer);
  timer = setTimeout(hide, currentDurationMs);
}

for (const name of ["pointerenter", "focusin"])
  bar.addEventListener(name, () => clearTimeout(timer));
for (const name of ["pointerleave", "focusout"])
  bar.addEventListener(name, () => "shown" in bar.dataset && startTimer());

function hide() {
  clearTimeout(timer);
  delete bar.dataset.shown;
  bar.querySelector("button")?.remove();
  const callback = onClose;
  onClose = () => {};
  callback();
}
