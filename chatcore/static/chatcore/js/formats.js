// Format numbers and durations for people, in the language of the page.

// Up to which share each word holds.
const FILLS = [
  [0, "fillNone"],
  [0.05, "fillHardly"],
  [0.2, "fillFifth"],
  [0.29, "fillQuarter"],
  [0.42, "fillThird"],
  [0.58, "fillHalf"],
  [0.7, "fillTwoThirds"],
  [0.8, "fillThreeQuarters"],
  [1, "fillNearly"],
];

const language = document.documentElement.lang;

export function formatNumber(number, options = {}) {
  return new Intl.NumberFormat(language, options).format(number);
}

// A number of tokens with three digits, as 41.2k.
export function formatCount(count) {
  if (count < 1000) return String(count);
  const [number, unit] = count < 1_000_000 ? [count / 1000, "k"] : [count / 1_000_000, "M"];
  const digits = number < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 };
  return formatNumber(number, { ...digits, useGrouping: false }) + unit;
}

// Return the key of the words that say how full something is.
export function chooseFill(share) {
  if (share > 1) return "fillOver";
  return FILLS.find(([limit]) => share <= limit)[1];
}

// Small amounts have two digits that count.
export function formatCost(amount) {
  const digits = amount < 0.01 ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2 };
  return formatNumber(amount, { maximumFractionDigits: 2, ...digits });
}

// A part of a whole in whole percent; a small one is not nothing.
export function formatShare(share) {
  const [sign, shown] = share > 0 && share < 0.01 ? ["< ", 0.01] : ["", share];
  return sign + formatNumber(shown, { style: "percent" });
}

// Two numbers before and after a change; empty without the first.
export function formatCountChange(before, after) {
  return before === null ? "" : `${formatCount(before)} → ${formatCount(after)}`;
}

// By how much a number has shrunk, as " (−76%)"; empty where it has not.
export function formatSaving(before, after) {
  if (!before || after >= before) return "";
  return ` (${formatNumber(after / before - 1, { style: "percent" })})`;
}

// Whole seconds, for a number that counts up.
export function formatElapsed(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  return seconds < 60 ? `${seconds} s` : formatDuration(seconds * 1000);
}

export function formatDuration(milliseconds) {
  const seconds = milliseconds / 1000;
  const digits = seconds < 10 ? 1 : 0;
  if (seconds < 60)
    return `${formatNumber(seconds, { minimumFractionDigits: digits, maximumFractionDigits: digits })} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
