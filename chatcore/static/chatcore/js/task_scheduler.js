// Run less urgent tasks in short slices, so that typing and scrolling stay smooth. The newest task
// runs first: in a long chat it is the one on the screen.

const SLICE_MS = 8;
const tasks = [];
let timer = 0;

export function scheduleTask(task) {
  tasks.push(task);
  timer ||= setTimeout(runSlice);
}

function runSlice() {
  const startedAt = performance.now();
  timer = 0;
  while (tasks.length && performance.now() - startedAt < SLICE_MS) tasks.pop()();
  if (tasks.length) timer = setTimeout(runSlice, SLICE_MS);
}
