// One tab stop for a list of rows: the arrow keys move between the rows.

// Keep the controls of one row of `list` in the order of the Tab key: of the one that has or had
// the focus, else of the open chat, else of the first row.
export function rove(list, rowSelector) {
  const getRows = () => [...list.querySelectorAll(rowSelector)];

  function setActive(active) {
    for (const row of getRows())
      for (const control of row.querySelectorAll(":scope > a, :scope > button"))
        control.tabIndex = row === active ? 0 : -1;
  }

  function refresh() {
    const rows = getRows();
    const isActive = (row) => row.contains(document.activeElement);
    setActive(
      rows.find(isActive) ?? rows.find((row) => row.querySelector("[aria-current]")) ?? rows[0],
    );
  }

  list.addEventListener("focusin", ({ target }) => {
    const row = target.closest(rowSelector);
    if (row) setActive(row);
  });
  list.addEventListener("keydown", (event) => {
    const row = event.target.closest(rowSelector);
    if (!row || event.target.closest(".menu, input")) return;
    const rows = getRows();
    const at = rows.indexOf(row);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (next === undefined || row.querySelector(":popover-open")) return;
    event.preventDefault();
    event.stopPropagation(); // Home and End do not scroll the messages
    rows[next]?.querySelector("a").focus();
  });
  document.addEventListener("htmx:afterSettle", refresh);
  refresh();
}
