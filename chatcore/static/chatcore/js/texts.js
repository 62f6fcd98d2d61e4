// Read the texts of the page in the user's language, from <template id="page-texts">.

import { formatNumber } from "./formats.js";

const texts = document.getElementById("page-texts").dataset;
const plurals = new Intl.PluralRules(document.documentElement.lang);

// Add those of a part of the page that was fetched.
export const addTexts = (element) => Object.assign(texts, element.dataset);

// Return a text with its values. Where `count` asks for the singular, the text `<key>One` is taken,
// if there is one.
export function getText(key, values = {}) {
  const isOne = typeof values.count === "number" && plurals.select(values.count) === "one";
  const text = (isOne && texts[`${key}One`]) || texts[key];
  return text.replace(/%\((\w+)\)s|%%/g, (_, name) => (name ? formatValue(values, name) : "%"));
}

function formatValue(values, name) {
  const value = values[name];
  return name === "count" && typeof value === "number" ? formatNumber(value) : value;
}

export const hasText = (key) => key in texts;

// Return the key of a text for a value of the API: ("run", "fell_back") → runFellBack.
export function textKey(prefix, value) {
  return (
    prefix +
    value
      .split("_")
      .map((word) => word[0].toUpperCase() + word.slice(1))
      .join("")
  );
}

export function getRoleName(role) {
  return getText(
    { user: "roleUser", assistant: "roleAssistant", tool: "roleTool" }[role] ?? "roleAside",
  );
}
