// Show what changed between two texts, word by word.

import { diffArrays } from "../vendor/diff/array.js";

const MAX_CHANGED_WORDS = 2000; // beyond that, the old text is shown as replaced by the new one
const CONTEXT_WORDS = 10; // unchanged words shown on each side of a change

export function renderDiff(root, before, after) {
  const changes = diffWords(before, after);
  const elements = changes.map((change, index) =>
    createElement(change, { isFirst: index === 0, isLast: index === changes.length - 1 }),
  );
  root.replaceChildren(...elements);
}

function diffWords(before, after) {
  const [oldWords, newWords] = [splitWords(before), splitWords(after)];
  const options = { comparator: isSameWord, maxEditLength: MAX_CHANGED_WORDS };
  return diffArrays(oldWords, newWords, options) ?? replaceAll(oldWords, newWords);
}

function replaceAll(oldWords, newWords) {
  return [
    { removed: true, value: oldWords },
    { added: true, value: newWords },
  ];
}

// A word with the space around it.
function splitWords(text) {
  return text.match(/\s*\S+[^\S\n]*|\s+$/g) ?? [];
}

function isSameWord(one, other) {
  return one.trim() === other.trim();
}

function createElement({ added, removed, value }, position) {
  const element = document.createElement(removed ? "del" : added ? "ins" : "span");
  const words = added || removed ? value : shorten(value, position);
  element.textContent = words.join("");
  return element;
}

function shorten(words, { isFirst, isLast }) {
  if (words.length <= 3 * CONTEXT_WORDS) return words;
  const start = isFirst ? [] : words.slice(0, CONTEXT_WORDS);
  const end = isLast ? [] : words.slice(-CONTEXT_WORDS);
  return [...start, " … ", ...end];
}
