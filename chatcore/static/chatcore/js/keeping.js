// What was written and not sent yet, kept by the browser for each chat: over reloads, in every tab, until someone signs out.

const KINDS = ["draft", "files", "queue"];

// What is written in a chat that is not stored yet is one tab's.
const shelf = (session) => (session ? localStorage : sessionStorage);

export function keep(kind, session, value) {
  try {
    if (value === null) shelf(session).removeItem(`${kind}:${session}`);
    else shelf(session).setItem(`${kind}:${session}`, JSON.stringify(value));
  } catch {
    // Storage is forbidden or full; it is kept in the page alone.
  }
}

// null for nothing; undefined where nothing can be kept.
export function kept(kind, session) {
  try {
    return JSON.parse(shelf(session).getItem(`${kind}:${session}`));
  } catch {
    return undefined;
  }
}

// `take` is given what another tab keeps now, and what it kept before; null for nothing.
export function whenKeptElsewhere(kind, chat, take) {
  addEventListener("storage", ({ key, newValue, oldValue, storageArea }) => {
    if (chat.session && storageArea === localStorage && key === `${kind}:${chat.session}`)
      take(JSON.parse(newValue), JSON.parse(oldValue));
  });
}

export function forget(session) {
  for (const kind of KINDS) keep(kind, session, null);
}

export function forgetAll() {
  for (const store of [localStorage, sessionStorage]) {
    for (const key of Object.keys(store))
      if (KINDS.includes(key.split(":")[0])) store.removeItem(key);
  }
}
