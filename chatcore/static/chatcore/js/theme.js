// Apply the theme before the first paint, and store the time zone for the dates in the list of
// chats.
"use strict";
(() => {
  const root = document.documentElement;

  const stored = () => {
    try {
      return localStorage.getItem("theme") ?? "auto";
    } catch {
      return "auto"; // storage is forbidden: follow the system
    }
  };

  const show = (theme) => {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
  };

  const choose = (theme) => {
    show(theme);
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // Storage is forbidden: the choice lasts until the next page.
    }
  };

  const isDark = () =>
    (root.dataset.theme ??
      (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  show(stored());
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  document.cookie = `tz=${timeZone}; path=${root.dataset.home}; max-age=31536000; samesite=lax`;

  // The theme may change in another tab, or while this page was left.
  addEventListener("storage", ({ key }) => key === "theme" && show(stored()));
  addEventListener("pageshow", ({ persisted }) => persisted && show(stored()));

  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-theme-toggle]")) choose(isDark() ? "light" : "dark");
  });
  document.addEventListener("change", (event) => {
    if (event.target.closest("[data-theme-choices]")) choose(event.target.value);
  });
  document.addEventListener("DOMContentLoaded", () => {
    const chosen = document.querySelector(`[data-theme-choices] [value="${stored()}"]`);
    if (chosen) chosen.checked = true;
  });
})();
