// In a worker: the colors of code, as nested lists of words that the page only has to put into elements.

import hljs from "../vendor/highlight.min.js";

const LIMIT = 250_000; // characters; longer code stays plain
const PIECE = /<span class="([^"]*)">|<\/span>|[^<]+/g; // all that highlight.js writes
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

addEventListener("message", ({ data: { id, language, text, lines } }) => {
  const known = hljs.getLanguage(language) && text.length <= LIMIT;
  postMessage({
    id,
    chunks: known
      ? chunks(hljs.highlight(text, { language, ignoreIllegals: true }).value, lines)
      : [],
  });
});

// One list for each so many lines: a string is plain, ["hljs-string", …] is in that class. What spans a border is opened again after it.
function chunks(html, lines) {
  const done = [];
  const open = [[]];
  let left = lines;
  for (const [piece, name] of html.matchAll(PIECE)) {
    if (name) nest(open, name);
    else if (piece === "</span>") open.pop();
    else {
      for (const line of piece.split(/(?<=\n)/)) {
        if (!left) {
          done.push(open[0]);
          reopen(open);
          left = lines;
        }
        open.at(-1).push(line.replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity]));
        if (line.endsWith("\n")) left -= 1;
      }
    }
  }
  return [...done, open[0]];
}

function nest(open, name) {
  const inner = [name];
  open.at(-1).push(inner);
  open.push(inner);
}

function reopen(open) {
  const names = open.slice(1).map(([name]) => name);
  open.splice(0, open.length, []);
  for (const name of names) nest(open, name);
}
