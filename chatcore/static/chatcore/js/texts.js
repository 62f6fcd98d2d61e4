// Read the texts of the page in the user's language, from <template id="page-texts">.

const texts = document.getElementById("page-texts").dataset;

export function getText(key, values = {}) {
  return texts[key].replace(/%\((\w+)\)s|%%/g, (_, name) => (name ? values[name] : "%"));
}

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
