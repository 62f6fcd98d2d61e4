// Connect tabs with their panels. Arrow keys move between the tabs.

let tabLists = 0;

export function initTabs(root, { onSelect }) {
  const tabs = [...root.querySelectorAll("[role=tab]")];
  const number = (tabLists += 1);
  for (const tab of tabs) {
    const panel = getPanel(root, tab);
    tab.id = `tab-${number}-${tab.dataset.tab}`;
    panel.id = `panel-${number}-${tab.dataset.tab}`;
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("aria-labelledby", tab.id);
    panel.tabIndex = 0;
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => step(event, tab));
  }

  function select(selectedTab) {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === selectedTab));
      tab.tabIndex = tab === selectedTab ? 0 : -1;
      getPanel(root, tab).hidden = tab !== selectedTab;
    }
    onSelect(selectedTab.dataset.tab, getPanel(root, selectedTab));
  }

  function step(event, tab) {
    const direction = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const visibleTabs = tabs.filter((each) => !each.hidden);
    const next = visibleTabs.at((visibleTabs.indexOf(tab) + direction) % visibleTabs.length);
    next.focus();
    select(next);
  }

  const firstTab = tabs.find((tab) => !tab.hidden);
  if (firstTab) select(firstTab);
}

function getPanel(root, tab) {
  return root.querySelector(`[data-view="${tab.dataset.tab}"]`);
}
