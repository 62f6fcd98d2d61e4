// Update the elements of a growing text: one part for each token, changed only where its text
// changed.

import { CodeBlock } from "./code_block.js";
import { enableKeyboardScrolling } from "./keyboard_scrolling.js";

// Make `parts`, the children of `parent`, match the tokens. A part that another one follows is
// done. What must be rendered goes to `renderQueue` as [token, function that takes the nodes], so
// that one call of the sanitizer checks all of it.
export function updateParts(parts, parent, tokens, { done, renderQueue }) {
  tokens.forEach((token, index) => {
    if (parts[index] && !parts[index].accepts(token)) removeParts(parts, index);
    parts[index] ??= createPart(token, parent);
    parts[index].update(token, { done: done || index < tokens.length - 1, renderQueue });
  });
  removeParts(parts, tokens.length);
}

function removeParts(parts, from) {
  for (const part of parts.splice(from)) for (const node of part.nodes) node.remove();
}

function createPart(token, parent) {
  const part = new (PART_CLASSES[token.type] ?? TextPart)(token);
  parent.append(...part.nodes);
  return part;
}

// Text, or any token that is rendered in one step. Nodes that do not change stay, and with them a
// selection, a formula or a computed layout.
class TextPart {
  nodes = [document.createTextNode("")];
  #raw;

  constructor({ type }) {
    this.type = type;
  }

  accepts({ type }) {
    return type === this.type;
  }

  update(token, { renderQueue }) {
    if (token.raw === this.#raw) return;
    this.#raw = token.raw;
    renderQueue.push([
      token,
      (newNodes) =>
        (this.nodes = mergeNodes(
          this.nodes,
          newNodes.length ? newNodes : [document.createTextNode("")],
        )),
    ]);
  }
}

// Replace `oldNodes` on the page by `newNodes`, reuse those that are equal, and return the result.
function mergeNodes(oldNodes, newNodes) {
  const shorter = Math.min(oldNodes.length, newNodes.length);
  let same = 0;
  while (same < shorter && oldNodes[same].isEqualNode(newNodes[same])) same += 1;
  if (same < shorter && extendNode(oldNodes[same], newNodes[same])) same += 1;
  const nodes = oldNodes.slice(0, same);
  const added = newNodes.slice(same);
  if (nodes.length) nodes.at(-1).after(...added);
  else oldNodes[0].before(...added);
  for (const node of oldNodes.slice(same)) node.remove();
  return [...nodes, ...added];
}

function extendNode(oldNode, newNode) {
  if (oldNode.nodeType !== newNode.nodeType) return false;
  if (oldNode.nodeType === Node.TEXT_NODE) return appendText(oldNode, newNode.data);
  if (!oldNode.hasChildNodes() || !newNode.hasChildNodes()) return false;
  if (!oldNode.cloneNode().isEqualNode(newNode.cloneNode())) return false;
  mergeNodes([...oldNode.childNodes], [...newNode.childNodes]);
  return true;
}

function appendText(text, data) {
  if (!data.startsWith(text.data)) return false;
  text.appendData(data.slice(text.data.length));
  return true;
}

// A part with children: a list, a list item, a quotation, a row or cell of a table, a block of the
// text.
class ContainerPart {
  #parts = [];
  #raw;
  #state;

  constructor(token) {
    this.kind = describeKind(token);
    this.element = document.createElement(ELEMENTS[token.type] ?? (token.ordered ? "ol" : "ul"));
    if (token.className) this.element.className = token.className;
    if (token.task) this.element.className = "task";
    if (token.ordered && token.start !== 1) this.element.start = token.start;
    if (token.align) this.element.align = token.align;
    this.nodes = [this.element];
  }

  accepts(token) {
    return describeKind(token) === this.kind;
  }

  update(token, { done, renderQueue }) {
    const state = `${done} ${token.loose}`;
    if (token.raw === this.#raw && state === this.#state) return;
    this.#raw = token.raw;
    this.#state = state;
    updateParts(this.#parts, this.element, (token.items ?? token.tokens).filter(isVisible), {
      done,
      renderQueue,
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

function describeKind({ type, className, ordered, start, align, task }) {
  return `${type} ${className} ${ordered} ${start} ${align} ${task}`;
}

export function isVisible({ type }) {
  return type !== "space" && type !== "def";
}

// A table in a scrolling box, updated row by row.
class TablePart {
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
    enableKeyboardScrolling(box, table);
    this.nodes = [box];
  }

  accepts({ type, align }) {
    return type === "table" && String(align) === this.columns;
  }

  update({ header, rows }, state) {
    updateParts(this.#head, this.head, [createRow(header)], state);
    updateParts(this.#rows, this.body, rows.map(createRow), state);
  }
}

function createRow(cells) {
  const cellTokens = cells.map(({ text, header, align, tokens }) => ({
    type: header ? "head" : "cell",
    raw: text,
    align,
    tokens: [{ type: "words", raw: text, tokens }],
  }));
  return { type: "row", raw: cells.map(({ text }) => text).join("\n"), tokens: cellTokens };
}

const PART_CLASSES = {
  block: ContainerPart,
  code: CodeBlock,
  table: TablePart,
  list: ContainerPart,
  list_item: ContainerPart,
  blockquote: ContainerPart,
  row: ContainerPart,
  head: ContainerPart,
  cell: ContainerPart,
};
