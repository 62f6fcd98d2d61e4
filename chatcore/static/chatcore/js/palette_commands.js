// The commands of the palette: what one would otherwise look for in menus.

import { buildPath } from "./paths.js";
import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

const click = (selector) => document.querySelector(selector)?.click();
const getChat = () => document.querySelector("chat-stream");

const COMMANDS = {
  new: () => click("[data-shortcut=new]"),
  project: () => location.assign(buildPath("projects/")),
  summarize: () => getChat().meter.requestCompaction(),
  context: () => getChat().openPanel(),
  export: () => location.assign(buildPath(`api/v1/sessions/${getChat().session}/export`)),
  model: () => getChat().composer.openPicker(),
  theme: () => click("[data-theme-toggle]"),
  settings: () => click(".foot-link"),
  help: () => click("[data-opens=help]"),
};

// Add the commands that the words name, or all without words, behind what was found.
export function addCommands(list, words) {
  const template = document.getElementById("palette-commands");
  const group = template.content.firstElementChild.cloneNode(true);
  for (const option of group.querySelectorAll("[data-command]"))
    if (!isOffered(option, words.trim().toLowerCase())) option.remove();
  if (!group.querySelector("[data-command]")) return;
  list.append(group);
  list.parentElement.querySelector(".found-none")?.remove();
}

function isOffered({ dataset, textContent }, words) {
  if ("needsChat" in dataset && !getChat()?.session) return false;
  if ("needsComposer" in dataset && !getChat()) return false;
  return textContent.trim().toLowerCase().includes(words);
}

export function runCommand(name) {
  Promise.resolve(COMMANDS[name]()).catch((problem) =>
    showSnackbar(getText("failed", { why: problem.message })),
  );
}
