// What changed between two texts, word by word.

const MOST_CELLS = 6_000_000; // of the table; texts that differ more are shown as one replaced by the other
const KEPT = 10; // words shown on each side of a change; what stays the same between is left out

// Pieces in order: { kind: "same" | "gone" | "new", text }.
export function wordDiff(before, after) {
  const old = words(before);
  const now = words(after);
  let start = 0;
  while (start < old.length && start < now.length && alike(old[start], now[start])) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < now.length - start &&
    alike(old.at(-1 - end), now.at(-1 - end))
  )
    end += 1;
  const pieces = [];
  const add = (kind, text) =>
    pieces.at(-1)?.kind === kind ? (pieces.at(-1).text += text) : pieces.push({ kind, text });
  for (const word of now.slice(0, start)) add("same", word);
  between(old.slice(start, old.length - end), now.slice(start, now.length - end), add);
  for (const word of now.slice(now.length - end)) add("same", word);
  return pieces;
}

function words(text) {
  return text.match(/\s*\S+[^\S\n]*|\s+$/g) ?? [];
}

function alike(one, other) {
  return one.trim() === other.trim();
}

function between(old, now, add) {
  if ((old.length + 1) * (now.length + 1) > MOST_CELLS) {
    if (old.length) add("gone", old.join(""));
    if (now.length) add("new", now.join(""));
    return;
  }
  const common = lengths(old, now);
  const width = now.length + 1;
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && alike(old[i], now[j])) {
      add("same", now[j]);
      i += 1;
      j += 1;
    } else if (
      i < old.length &&
      (j === now.length || common[(i + 1) * width + j] >= common[i * width + j + 1])
    ) {
      add("gone", old[i++]);
    } else {
      add("new", now[j++]);
    }
  }
}

// How many words the rest of the one has in common with the rest of the other.
function lengths(old, now) {
  const width = now.length + 1;
  const table = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      table[at] = alike(old[i], now[j])
        ? table[at + width + 1] + 1
        : Math.max(table[at + width], table[at + 1]);
    }
  }
  return table;
}

export function showDiff(root, before, after) {
  root.replaceChildren();
  const pieces = wordDiff(before, after);
  pieces.forEach(({ kind, text }, index) => {
    const element = document.createElement({ same: "span", gone: "del", new: "ins" }[kind]);
    element.textContent =
      kind === "same"
        ? shortened(text, { first: index === 0, last: index === pieces.length - 1 })
        : text;
    root.append(element);
  });
}

function shortened(text, { first, last }) {
  const all = words(text);
  if (all.length <= 3 * KEPT) return text;
  return `${first ? "" : all.slice(0, KEPT).join("")} … ${last ? "" : all.slice(-KEPT).join("")}`;
}
