// Keep one theme for the chat and the admin: unfold stores its choice under a name of its own.
"use strict";
(() => {
  const root = document.documentElement;
  try {
    const theme = localStorage.getItem("theme") ?? "auto";
    localStorage.setItem("adminTheme", JSON.stringify(theme));
    // The classes are set before the first paint; Alpine sets the same ones later.
    const isDark =
      theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
    root.classList.toggle("dark", isDark);

    const store = () => {
      const chosen = JSON.parse(localStorage.getItem("adminTheme") ?? '"auto"');
      if (chosen === (localStorage.getItem("theme") ?? "auto")) return;
      localStorage.setItem("theme", chosen);
    };
    // Colors of the chat's own files follow the classes.
    new MutationObserver(() => {
      root.dataset.theme = root.classList.contains("dark") ? "dark" : "light";
      store();
    }).observe(root, { attributeFilter: ["class"] });
    root.dataset.theme = isDark ? "dark" : "light";
  } catch {
    // Storage is forbidden: the choice lasts until the next page.
  }
})();
