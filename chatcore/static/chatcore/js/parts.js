// What stands on the page for a text that grows: one part for each token, made anew only where its words changed.

import { Code } from "./code.js";
import { reachable } from "./reachable.js";

// Bring `parts`, which stand in `parent`, to these tokens. What is followed by something is done. What must be drawn is put on `canvas`:
// [token, what takes its nodes], so that all of it passes the sanitizer at once.
export function bring(parts, parent, tokens, { done, canvas }) {
  tokens.forEach((token, at) => {
    if (parts[at] && !parts[at].takes(token)) drop(parts, at);
    parts[at] ??= begun(token, parent);
    parts[at].update(token, { done: done || at < tokens.length - 1, canvas });
  });
  drop(parts, tokens.length);
}

function drop(parts, from) {
  for (const part of parts.splice(from)) for (const node of part.nodes) node.remove();
}

function begun(token, parent) {
  const part = new (KINDS[token.type] ?? Leaf)(token);
  parent.append(...part.nodes);
  return part;
}

// Words, or anything that is drawn in one go. What is the same in it stays: a selection, a formula, the layout of a long text.
class Leaf {
  nodes = [document.createTextNode("")];
  #raw;

  constructor({ type }) {
    this.type = type;
  }

  takes({ type }) {
    return type === this.type;
  }

  update(token, { canvas }) {
    if (token.raw === this.#raw) return;
    this.#raw = token.raw;
    canvas.push([
      token,
      (fresh) =>
        (this.nodes = merged(this.nodes, fresh.length ? fresh : [document.createTextNode("")])),
    ]);
  }
}

// The nodes that now stand where `old` stood, looking like `fresh`.
function merged(old, fresh) {
  let same = 0;
  while (same < old.length && same < fresh.length && old[same].isEqualNode(fresh[same])) same += 1;
  const kept = old.slice(0, same);
  if (same < old.length && same < fresh.length && continued(old[same], fresh[same]))
    kept.push(old[same]);
  const added = fresh.slice(kept.length);
  if (kept.length) kept.at(-1).after(...added);
  else old[0].before(...added);
  for (const node of old.slice(kept.length)) node.remove();
  return [...kept, ...added];
}

function continued(old, fresh) {
  if (old.nodeType !== fresh.nodeType) return false;
  if (old.nodeType === Node.TEXT_NODE) return appended(old, fresh.data);
  if (
    !old.hasChildNodes() ||
    !fresh.hasChildNodes() ||
    !old.cloneNode().isEqualNode(fresh.cloneNode())
  )
    return false;
  merged([...old.childNodes], [...fresh.childNodes]);
  return true;
}

function appended(text, words) {
  if (!words.startsWith(text.data)) return false;
  text.appendData(words.slice(text.data.length));
  return true;
}

// What holds others: a list its items, an item or a quotation its paragraphs, lists and code; a row its cells, the whole text its blocks.
class Branch {
  #parts = [];
  #raw;
  #state;

  constructor(token) {
    this.kind = kind(token);
    this.element = document.createElement(ELEMENTS[token.type] ?? (token.ordered ? "ol" : "ul"));
    if (token.className) this.element.className = token.className;
    if (token.ordered && token.start !== 1) this.element.start = token.start;
    if (token.align) this.element.align = token.align;
    this.nodes = [this.element];
  }

  takes(token) {
    return kind(token) === this.kind;
  }

  update(token, { done, canvas }) {
    const state = `${done} ${token.loose}`;
    if (token.raw === this.#raw && state === this.#state) return;
    this.#raw = token.raw;
    this.#state = state;
    bring(this.#parts, this.element, (token.items ?? token.tokens).filter(isShown), {
      done,
      canvas,
    });
  }
}

const ELEMENTS = {
  block: "div",
  list_item: "li",
  blockquote: "blockquote",
  row: "tr",
  head: "th",
  cell: "td",
};

function kind({ type, className, ordered, start, align }) {
  return `${type} ${className} ${ordered} ${start} ${align}`;
}

export function isShown({ type }) {
  return type !== "space" && type !== "def";
}

// A table in a box of its own, row by row.
class Table {
  #head = [];
  #rows = [];

  constructor({ align }) {
    const table = document.createElement("table");
    const box = document.createElement("div");
    this.columns = String(align);
    this.head = table.createTHead();
    this.body = table.createTBody();
    box.className = "table";
    box.append(table);
    reachable(box, table);
    this.nodes = [box];
  }

  takes({ type, align }) {
    return type === "table" && String(align) === this.columns;
  }

  update({ header, rows }, state) {
    bring(this.#head, this.head, [row(header)], state);
    bring(this.#rows, this.body, rows.map(row), state);
  }
}

function row(cells) {
  const tokens = cells.map(({ text, header, align, tokens }) => ({
    type: header ? "head" : "cell",
    raw: text,
    align,
    tokens: [{ type: "words", raw: text, tokens }],
  }));
  return { type: "row", raw: cells.map(({ text }) => text).join("\n"), tokens };
}

const KINDS = {
  block: Branch,
  code: Code,
  table: Table,
  list: Branch,
  list_item: Branch,
  blockquote: Branch,
  row: Branch,
  head: Branch,
  cell: Branch,
};
