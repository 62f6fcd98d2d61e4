// Merge the server's messages into the page without touching those that did not change, so that
// folds stay open and an edit goes on.

const originalMarkup = new WeakMap(); // message → its HTML as it came from the server

export function recordMarkup(root) {
  for (const article of root.querySelectorAll("article"))
    if (!originalMarkup.has(article)) originalMarkup.set(article, article.outerHTML);
}

// Return the new elements, each replaced by the existing one where that can stay.
export function mergeElements(fresh, findExisting) {
  return [...fresh.children].map((element) =>
    element.dataset.message
      ? chooseElement(findExisting(element.dataset.message), element)
      : element,
  );
}

// Keep what the model or the user is writing.
function chooseElement(existing, fresh) {
  if (!existing) return fresh;
  const isStreaming =
    existing.dataset.status === "streaming" && fresh.dataset.status === "streaming";
  const isUnchanged = originalMarkup.get(existing) === fresh.outerHTML;
  return isStreaming || isUnchanged || existing.querySelector(".editor") ? existing : fresh;
}

// Bring the list into this order. Cards are left alone; SummaryCards places them.
export function arrangeElements(list, elements) {
  const stays = new Set(elements);
  for (const element of [...list.children])
    if (!stays.has(element) && !element.matches(".card")) element.remove();
  let at = list.firstElementChild;
  for (const element of elements) {
    while (at?.matches(".card")) at = at.nextElementSibling;
    if (element === at) at = at.nextElementSibling;
    else list.insertBefore(element, at);
  }
}

// Remember what has the focus, and return a function that focuses the same button of the same message,
// or the message. It serves users who step through versions by keyboard.
export function saveFocus(list) {
  const focused = document.activeElement;
  const article = focused?.closest(".timeline article");
  if (!article) return null;
  const index = [...list.querySelectorAll("article")].indexOf(article);
  const name = focused.getAttribute("aria-label");
  return () => {
    if (document.activeElement === focused) return;
    const fresh = [...list.querySelectorAll("article")][index];
    if (!fresh) return;
    const sameButton = [...fresh.querySelectorAll("button:enabled")].find(
      (other) => name && other.getAttribute("aria-label") === name,
    );
    const isButton = focused.matches("button");
    if (!isButton) fresh.tabIndex = -1;
    const next = sameButton ?? (isButton ? fresh.querySelector("[data-act=menu]") : fresh);
    next?.focus({ preventScroll: true });
  };
}
