// Footnotes in markdown: [^label] in a text, and [^label]: with the note, as GitHub writes them.

const DEFINITION = /^ {0,3}\[\^([\w-]{1,40})\]:[ \t]*([^\n]*)(?:\n|$)/;
const ALL_DEFINITIONS = /^ {0,3}\[\^([\w-]{1,40})\]:/gm;
const REFERENCE = /^\[\^([\w-]{1,40})\]/;
const ADDRESS = /^#note-([\w-]{1,40})$/;

export const isFootnoteLink = (address) => ADDRESS.test(address);

// Return the labels of all notes that a text defines.
export function collectLabels(text) {
  return new Set([...text.matchAll(ALL_DEFINITIONS)].map(([, label]) => label));
}

const noteBlock = {
  name: "footnote",
  level: "block",
  start: (source) => source.match(/^ {0,3}\[\^/m)?.index,
  tokenizer(source) {
    const [raw, label, text] = DEFINITION.exec(source) ?? [];
    return raw && { type: "footnote", raw, label, tokens: this.lexer.inlineTokens(text) };
  },
  renderer({ label, tokens }) {
    return `<p class="note"><sup>${label}</sup> ${this.parser.parseInline(tokens)}</p>`;
  },
};

// Without its note a reference is text: [^abc] is also what a pattern looks like.
const reference = {
  name: "footnoteReference",
  level: "inline",
  start: (source) => source.match(/\[\^/)?.index,
  tokenizer(source) {
    const [raw, label] = REFERENCE.exec(source) ?? [];
    return raw && footnotes.labels.has(label)
      ? { type: "footnoteReference", raw, label }
      : undefined;
  },
  renderer: ({ label }) => `<sup><a href="#note-${label}">${label}</a></sup>`,
};

// An extension of the parser. `labels` are those of the text that is parsed next.
export const footnotes = { labels: new Set(), extensions: [noteBlock, reference] };

// Go to the note in the same text: several answers may have a note of this label.
document.addEventListener("click", (event) => {
  const link = event.target.closest('.prose a[href^="#note-"]');
  const [, label] = ADDRESS.exec(link?.getAttribute("href") ?? "") ?? [];
  if (!label) return;
  event.preventDefault();
  const notes = [...link.closest(".prose").querySelectorAll("p.note")];
  const note = notes.find(({ firstChild }) => firstChild.textContent === label);
  if (!note) return;
  note.tabIndex = -1;
  note.focus();
  note.scrollIntoView({ block: "nearest" });
});
