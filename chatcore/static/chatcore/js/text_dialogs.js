// Ask for the fields of a prompt, or show a text that was pasted as a file, to be changed.

export const FIELD = /\{\{\s*(\p{L}[\p{L}\p{N}_ -]*?)\s*\}\}/gu;

// Return the text with the answer to each of its fields; null if the user left.
export async function askFields(chat, text) {
  const names = [...new Set([...text.matchAll(FIELD)].map(([, name]) => name))];
  const form = openForm(chat, "prompt-fields-template");
  for (const name of names) {
    const label = document.createElement("label");
    label.className = "field";
    label.append(name.replaceAll("_", " "), document.createElement("textarea"));
    label.lastChild.rows = 1;
    label.lastChild.name = name;
    form.querySelector(".dialog-buttons").before(label);
  }
  form.querySelector("textarea").focus();
  if (!(await isSubmitted(form))) return null;
  return text.replace(FIELD, (_, name) => form.elements[name].value);
}

// Return the text as the user left it; null if nothing was saved.
export async function editText(chat, text) {
  const form = openForm(chat, "pasted-text-template");
  const field = form.querySelector("textarea");
  field.value = text;
  field.focus();
  field.setSelectionRange(0, 0);
  return (await isSubmitted(form)) ? field.value : null;
}

function openForm(chat, template) {
  const [form] = chat.timeline.cloneTemplate(template);
  const dialog = document.getElementById("dialog");
  dialog.replaceChildren(form);
  dialog.showModal();
  return form;
}

function isSubmitted(form) {
  return new Promise((resolve) => {
    form.addEventListener("submit", () => resolve(true));
    form.closest("dialog").addEventListener("close", () => resolve(false), { once: true });
  });
}
