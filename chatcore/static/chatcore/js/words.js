// What the modules say, in the page's language: the texts stand in its <template id="words">.

const texts = document.getElementById("words").dataset;

export function say(key, values = {}) {
  return texts[key].replace(/%\((\w+)\)s|%%/g, (_, name) => (name ? values[name] : "%"));
}

// The key of a text for a value of the API: ("run", "fell_back") → runFellBack.
export function camel(prefix, value) {
  return (
    prefix +
    value
      .split("_")
      .map((word) => word[0].toUpperCase() + word.slice(1))
      .join("")
  );
}

export function shortCount(count) {
  if (count < 1000) return String(count);
  const [number, unit] = count < 1_000_000 ? [count / 1000, "k"] : [count / 1_000_000, "M"];
  return (number < 100 ? String(Number(number.toPrecision(3))) : number.toFixed(0)) + unit;
}

export function shortTime(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
