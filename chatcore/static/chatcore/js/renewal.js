// The messages as the server has them now, taken over without touching what did not change: a fold stays open, a word being written goes on.

const origins = new WeakMap(); // a message → the markup it came in, before anything was drawn into it

export function remember(root) {
  for (const article of root.querySelectorAll("article"))
    if (!origins.has(article)) origins.set(article, article.outerHTML);
}

// What comes from the server, or in its place what is there of it already.
export function taken(fresh, there) {
  return [...fresh.children].map((element) =>
    element.dataset.message ? chosen(there(element.dataset.message), element) : element,
  );
}

// What is being written here, by the model or by the user, is not written over.
function chosen(here, fresh) {
  if (!here) return fresh;
  const growing = here.dataset.status === "streaming" && fresh.dataset.status === "streaming";
  const same = origins.get(here) === fresh.outerHTML;
  return growing || same || here.querySelector(".editor") ? here : fresh;
}

// Cards are put in their places by whoever knows them.
export function put(list, wanted) {
  const stays = new Set(wanted);
  for (const element of [...list.children])
    if (!stays.has(element) && !element.matches(".card")) element.remove();
  let at = list.firstElementChild;
  for (const element of wanted) {
    while (at?.matches(".card")) at = at.nextElementSibling;
    if (element === at) at = at.nextElementSibling;
    else list.insertBefore(element, at);
  }
}

// Whoever steps through versions by keyboard is still at the same button of the same place afterwards.
export function focused(list) {
  const button = document.activeElement?.closest(".timeline button");
  if (!button) return null;
  const place = [...list.querySelectorAll("article")].indexOf(button.closest("article"));
  const name = button.getAttribute("aria-label");
  return () => {
    if (button.isConnected) return;
    const article = [...list.querySelectorAll("article")][place];
    const same = [...(article?.querySelectorAll("button:enabled") ?? [])].find(
      (other) => other.getAttribute("aria-label") === name,
    );
    (same ?? article?.querySelector("[data-act=menu]"))?.focus({ preventScroll: true });
  };
}
