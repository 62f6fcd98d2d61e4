// Work that may wait, done in slices so that typing and scrolling go on. What came last is done first: of a long chat that is what is seen.

const SLICE_MS = 8;
const waiting = [];
let timer = 0;

export function later(work) {
  waiting.push(work);
  timer ||= setTimeout(slice);
}

function slice() {
  const begun = performance.now();
  timer = 0;
  while (waiting.length && performance.now() - begun < SLICE_MS) waiting.pop()();
  if (waiting.length) timer = setTimeout(slice, SLICE_MS);
}
