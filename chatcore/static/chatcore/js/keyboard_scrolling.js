// Let the keyboard reach a box while it scrolls sideways. Tab skips it when all of it fits.

const boxes = new WeakMap(); // watched element → its box
const sizes = new ResizeObserver((entries) => {
  for (const box of new Set(entries.map(({ target }) => boxes.get(target)))) updateTabStop(box);
});

function updateTabStop(box) {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

// Watch the box and the content that may become wider than the box.
export function enableKeyboardScrolling(box, content) {
  for (const element of [box, content]) {
    boxes.set(element, box);
    sizes.observe(element);
  }
}
