// A popover that a mouse opens by resting on its button and the keyboard by reaching it; a click keeps it open.

const REST_MS = 180; // before it opens, so that a mouse passing by opens nothing
const LEAVE_MS = 280; // before it closes, so that the way from the button to the popover is no leaving

export function shownOnHover(area, button, popover) {
  let timer;
  let kept = false; // opened or confirmed by a click

  const later = (wait, act) => {
    clearTimeout(timer);
    timer = setTimeout(act, wait);
  };
  const isOpen = () => popover.matches(":popover-open");

  area.addEventListener(
    "pointerenter",
    (event) =>
      event.pointerType === "mouse" && later(REST_MS, () => isOpen() || popover.showPopover()),
  );
  area.addEventListener(
    "pointerleave",
    (event) =>
      event.pointerType === "mouse" &&
      later(LEAVE_MS, () => kept || area.matches(":focus-within") || popover.hidePopover()),
  );
  button.addEventListener(
    "focus",
    () => button.matches(":focus-visible") && !isOpen() && popover.showPopover(),
  );
  area.addEventListener(
    "focusout",
    (event) => kept || area.contains(event.relatedTarget) || popover.hidePopover(),
  );
  button.addEventListener("click", (event) => {
    clearTimeout(timer);
    if (isOpen() && !kept) event.preventDefault();
    kept = true;
  });
  popover.addEventListener("toggle", (event) => {
    if (event.newState === "closed") kept = false;
  });
}
