// Fetch the code of a chat's settings before they open, as many never open them.

import { showSnackbar } from "./snackbar.js";
import { getText } from "./texts.js";

document.addEventListener("htmx:confirm", (event) => {
  const { elt, issueRequest } = event.detail;
  if (!elt.matches("[data-chat-settings]") || customElements.get("chat-settings")) return;
  event.preventDefault();
  import("./chat_settings.js").then(
    () => issueRequest(),
    (problem) => showSnackbar(getText("failed", { why: problem.message })),
  );
});
