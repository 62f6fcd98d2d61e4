// What a key means: whether it belongs to an input method, and whether Enter sends.

// Return whether a key belongs to an input method, which confirms or drops its candidate with it.
// Safari ends the composition before it tells of the key; only the code 229 says so then.
export const isInputMethodKey = ({ isComposing, keyCode }) => isComposing || keyCode === 229;

// Return whether Enter sends what was written. A phone has no Shift + Enter, so that Enter makes a
// line there; the button sends, and Ctrl or Cmd with Enter of a keyboard that is connected.
export function isSendKey(event) {
  if (event.key !== "Enter" || event.shiftKey || isInputMethodKey(event)) return false;
  return event.ctrlKey || event.metaKey || !matchMedia("(pointer: coarse)").matches;
}
