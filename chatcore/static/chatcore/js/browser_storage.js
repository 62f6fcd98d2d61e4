// Keep drafts, files and queued messages of each chat in the browser: over reloads, in every tab,
// until sign-out.

const KINDS = ["draft", "edit", "files", "queue", "seen", "read", "untitled"];

// The draft of a new chat, which has no id yet, belongs to one tab.
const getStorage = (session) => (session ? localStorage : sessionStorage);

export function saveItem(kind, session, value) {
  try {
    if (value === null) getStorage(session).removeItem(`${kind}:${session}`);
    else getStorage(session).setItem(`${kind}:${session}`, JSON.stringify(value));
  } catch {
    // Storage is forbidden or full: the page alone keeps it.
  }
}

// Return null when nothing is stored, undefined when the browser cannot store anything.
export function loadItem(kind, session) {
  try {
    return JSON.parse(getStorage(session).getItem(`${kind}:${session}`));
  } catch {
    return undefined;
  }
}

// Call `onChange` with the new and the previous value when another tab stores one; null for none.
export function onItemChangedElsewhere(kind, chat, onChange) {
  addEventListener("storage", ({ key, newValue, oldValue, storageArea }) => {
    if (chat.session && storageArea === localStorage && key === `${kind}:${chat.session}`)
      onChange(JSON.parse(newValue), JSON.parse(oldValue));
  });
}

export function removeItems(session) {
  for (const kind of KINDS) saveItem(kind, session, null);
}

export function removeAllItems() {
  for (const store of [localStorage, sessionStorage]) {
    for (const key of Object.keys(store))
      if (KINDS.includes(key.split(":")[0])) store.removeItem(key);
  }
}
