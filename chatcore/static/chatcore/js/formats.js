// Format numbers and durations for people.

export function formatCount(count) {
  if (count < 1000) return String(count);
  const [number, unit] = count < 1_000_000 ? [count / 1000, "k"] : [count / 1_000_000, "M"];
  return (number < 100 ? String(Number(number.toPrecision(3))) : number.toFixed(0)) + unit;
}

// Two numbers before and after a change; empty without the first.
export function formatCountChange(before, after) {
  return before === null ? "" : `${formatCount(before)} → ${formatCount(after)}`;
}

// Whole seconds, for a number that counts up.
export function formatElapsed(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  return seconds < 60 ? `${seconds} s` : formatDuration(seconds * 1000);
}

export function formatDuration(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
