// A page with a whole chat: render the markdown of its answers, and print it when all is drawn.

import "./local_time.js";
import { copyText } from "./clipboard.js";
import { getMarkdownView } from "./markdown.js";

const SLICE_MS = 12;
const FORMULA_FRAMES = 300; // how long printing waits for formulas
const OPEN_PROSE = ".prose:not([data-shown])";

const render = (prose) => getMarkdownView(prose).showFinal(prose.textContent);
const nextFrame = () => new Promise(requestAnimationFrame);

function renderRest() {
  for (const prose of document.querySelectorAll(OPEN_PROSE)) render(prose);
}

async function renderAll() {
  const rest = [...document.querySelectorAll(OPEN_PROSE)].reverse();
  while (rest.length) {
    const startedAt = performance.now();
    while (rest.length && performance.now() - startedAt < SLICE_MS) render(rest.pop());
    await nextFrame();
  }
}

async function print() {
  renderRest();
  for (let frame = 0; frame < FORMULA_FRAMES; frame += 1) {
    if (!document.querySelector(".prose .math:not([title], :has(.katex))")) break;
    await nextFrame();
  }
  await document.fonts.ready;
  window.print();
}

addEventListener("beforeprint", renderRest);
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("prints" in button.dataset) print();
  if ("copyCode" in button.dataset)
    copyText(button, button.closest("figure").querySelector("code").textContent);
});
for (const button of document.querySelectorAll("[data-prints]")) button.disabled = false;
renderAll();
