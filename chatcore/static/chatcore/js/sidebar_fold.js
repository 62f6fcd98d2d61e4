// Fold the sidebar of a wide window away: it then opens over the page, as on a phone.

const root = document.documentElement; // theme.js has folded it before the first paint
const sidebar = document.getElementById("sidebar");
const button = sidebar.querySelector("[data-folds]");
const opener = document.querySelector("main [popovertarget=sidebar]");
const isNarrow = matchMedia("(max-width: 52rem)"); // as in layout.css

function toggleFold() {
  const isFolded = root.toggleAttribute("data-folded");
  try {
    localStorage.setItem("sidebar", isFolded ? "folded" : "open");
  } catch {
    // Storage is forbidden: the choice lasts until the next page.
  }
  sidebar.hidePopover();
  showState();
  (isFolded ? opener : button).focus();
}

function showState() {
  button.setAttribute("aria-pressed", !root.hasAttribute("data-folded"));
}

showState();
button.addEventListener("click", toggleFold);
document.addEventListener("keydown", (event) => {
  if (event.key !== "." || !(event.ctrlKey || event.metaKey) || isNarrow.matches) return;
  event.preventDefault();
  toggleFold();
});
