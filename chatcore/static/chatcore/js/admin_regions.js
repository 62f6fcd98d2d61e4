// Give the admin's pages landmarks, and names to the parts that scroll. SimpleBar makes regions of
// these, all with one name. It begins when the page is complete, after this listener.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("main")?.setAttribute("role", "main");
  const title = document.querySelector("#main h1")?.textContent.trim();
  document.querySelectorAll("[data-simplebar]").forEach((part, at) => {
    part.dataset.simplebarAriaLabel ??= `${title} ${at + 1}`;
  });
  for (const cell of document.querySelectorAll("th")) {
    if (!cell.textContent.trim() && !cell.children.length)
      cell.setAttribute("role", "presentation");
  }
});
// Django makes its boxes for choosing several rows when everything is loaded.
addEventListener("load", () =>
  setTimeout(() => {
    for (const hint of document.querySelectorAll("span.help-tooltip[aria-label]")) {
      hint.setAttribute("role", "img");
    }
  }),
);
