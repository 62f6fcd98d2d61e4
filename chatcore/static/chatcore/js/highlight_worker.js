// Color code in a web worker. The result is nested lists, which the page turns into elements.

import hljs from "../vendor/highlight.min.js";

const MAX_CHARACTERS = 250_000; // longer code stays plain
const HTML_PIECE = /<span class="([^"]*)">|<\/span>|[^<]+/g; // highlight.js writes nothing else
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

addEventListener("message", ({ data: { id, language, text, lines } }) => {
  const isSupported = hljs.getLanguage(language) && text.length <= MAX_CHARACTERS;
  postMessage({
    id,
    chunks: isSupported
      ? splitChunks(hljs.highlight(text, { language, ignoreIllegals: true }).value, lines)
      : [],
  });
});

// Return one list for each chunk of `lines` lines. A string is plain text; ["hljs-string", …] has
// that class. A span across the end of a chunk is opened again in the next one.
function splitChunks(html, lines) {
  const chunks = [];
  const open = [[]];
  let linesLeft = lines;
  for (const [part, name] of html.matchAll(HTML_PIECE)) {
    if (name) openNested(open, name);
    else if (part === "</span>") open.pop();
    else {
      for (const line of part.split(/(?<=\n)/)) {
        if (!linesLeft) {
          chunks.push(open[0]);
          reopenNested(open);
          linesLeft = lines;
        }
        open.at(-1).push(line.replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity]));
        if (line.endsWith("\n")) linesLeft -= 1;
      }
    }
  }
  return [...chunks, open[0]];
}

function openNested(open, name) {
  const inner = [name];
  open.at(-1).push(inner);
  open.push(inner);
}

function reopenNested(open) {
  const names = open.slice(1).map(([name]) => name);
  open.splice(0, open.length, []);
  for (const name of names) openNested(open, name);
}
