// Open a popover by hover or keyboard focus. A click keeps it open.

const OPEN_DELAY_MS = 180; // so that a passing mouse opens nothing
const CLOSE_DELAY_MS = 280; // time to move from the button to the popover

export function openOnHover(area, button, popover) {
  let timer;
  let isPinned = false; // opened or confirmed by a click

  const startTimer = (delayMs, action) => {
    clearTimeout(timer);
    timer = setTimeout(action, delayMs);
  };
  const isOpen = () => popover.matches(":popover-open");

  area.addEventListener(
    "pointerenter",
    (event) =>
      event.pointerType === "mouse" &&
      startTimer(OPEN_DELAY_MS, () => isOpen() || popover.showPopover()),
  );
  area.addEventListener(
    "pointerleave",
    (event) =>
      event.pointerType === "mouse" &&
      startTimer(
        CLOSE_DELAY_MS,
        () => isPinned || area.matches(":focus-within") || popover.hidePopover(),
      ),
  );
  // A popover that closes, as this one by Escape, gives the focus back. Then nothing is to be opened,
  // and the browser would refuse.
  const isGivenBack = ({ relatedTarget }) =>
    relatedTarget?.closest("[popover]:not(:popover-open)") != null;
  button.addEventListener(
    "focus",
    (event) =>
      button.matches(":focus-visible") && !isGivenBack(event) && !isOpen() && popover.showPopover(),
  );
  area.addEventListener(
    "focusout",
    (event) => isPinned || area.contains(event.relatedTarget) || popover.hidePopover(),
  );
  button.addEventListener("click", (event) => {
    clearTimeout(timer);
    if (isOpen() && !isPinned) event.preventDefault();
    isPinned = true;
  });
  popover.addEventListener("toggle", (event) => {
    if (event.newState === "closed") isPinned = false;
  });
}
