// A box that scrolls sideways can be reached by keyboard while it does; where all fits, Tab does not stop.

const boxes = new WeakMap(); // what is watched → the box it is in
const sizes = new ResizeObserver((entries) => {
  for (const box of new Set(entries.map(({ target }) => boxes.get(target)))) reach(box);
});

function reach(box) {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

// The box, and what in it may become wider than it.
export function reachable(box, content) {
  for (const element of [box, content]) {
    boxes.set(element, box);
    sizes.observe(element);
  }
}
