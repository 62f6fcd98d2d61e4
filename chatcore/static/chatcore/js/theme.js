// Apply the theme and the folded sidebar before the first paint, and store the time zone for the
// dates in the list of chats.
"use strict";
(() => {
  const root = document.documentElement;

  const load = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null; // storage is forbidden
    }
  };

  const stored = () => load("theme") ?? "auto"; // follow the system

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
  root.toggleAttribute("data-folded", load("sidebar") === "folded");
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
