// Tabs and their panels: one is shown, arrows go from one to the next.

let made = 0;

export function tabbed(root, { shown }) {
  const tabs = [...root.querySelectorAll("[role=tab]")];
  const number = (made += 1);
  for (const tab of tabs) {
    const panel = panelOf(root, tab);
    tab.id = `tab-${number}-${tab.dataset.tab}`;
    panel.id = `panel-${number}-${tab.dataset.tab}`;
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("aria-labelledby", tab.id);
    panel.tabIndex = 0;
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => step(event, tab));
  }

  function select(chosen) {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      panelOf(root, tab).hidden = tab !== chosen;
    }
    shown(chosen.dataset.tab, panelOf(root, chosen));
  }

  function step(event, tab) {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    const there = tabs.filter((each) => !each.hidden);
    const next = there.at((there.indexOf(tab) + way) % there.length);
    next.focus();
    select(next);
  }

  const usable = tabs.find((tab) => !tab.hidden);
  if (usable) select(usable);
}

function panelOf(root, tab) {
  return root.querySelector(`[data-view="${tab.dataset.tab}"]`);
}
