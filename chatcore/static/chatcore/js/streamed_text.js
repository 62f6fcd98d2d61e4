// Assemble a text from deltas, each with its offset in code points. A repeated delta changes
// nothing, a missing one is noticed.

export class StreamedText {
  text = "";
  #codePoints = 0;

  // Return false when text before this delta is missing.
  append(offset, delta) {
    if (offset > this.#codePoints) return false;
    const points = Array.from(delta);
    const added = points.slice(this.#codePoints - offset);
    this.text += added.join("");
    this.#codePoints += added.length;
    return true;
  }
}
