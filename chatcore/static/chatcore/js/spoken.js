// A text that arrives in pieces, each with its offset in code points: a piece heard twice changes nothing, a missing one is noticed.

export class Spoken {
  text = "";
  #length = 0;

  // False when something before this piece is missing.
  hear(offset, piece) {
    if (offset > this.#length) return false;
    const points = Array.from(piece);
    const fresh = points.slice(this.#length - offset);
    this.text += fresh.join("");
    this.#length += fresh.length;
    return true;
  }
}
