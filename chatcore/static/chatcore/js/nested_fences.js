// Blocks of code in a block of Markdown, as models write them: all with three backticks. CommonMark
// alone ends the outer block where the first inner one ends.

const OPENING = /^( {0,3})(`{3,}|~{3,})[ \t]*((?:markdown|mdx?)\b[^`\n]*)\n/i;

export const opensMarkdown = (text) => new RegExp(OPENING, "im").test(text);

// Return where the block ends: {text, raw}; null while it is open.
function findEnd(source, opening, mark) {
  const line = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}[ \\t]*([^${mark[0]}\\n]*)$`, "gm");
  line.lastIndex = opening.length;
  let depth = 1;
  for (let match = line.exec(source); match; match = line.exec(source)) {
    depth += match[1].trim() ? 1 : -1; // a name of a language opens another block
    if (depth) continue;
    return {
      raw: source.slice(0, line.lastIndex),
      text: source.slice(opening.length, Math.max(opening.length, match.index - 1)),
    };
  }
  return null;
}

export const nestedFences = {
  isFinal: true, // whether the text grows no more
  extension: {
    tokenizer: {
      fences(source) {
        const [opening, indent, mark, info] = OPENING.exec(source) ?? [];
        if (!opening || indent) return false;
        const end = findEnd(source, opening, mark);
        if (!end && nestedFences.isFinal) return false; // not nested after all
        const { raw, text } = end ?? {
          raw: source,
          text: source.slice(opening.length).replace(/\n$/, ""),
        };
        return { type: "code", raw, lang: info.trim(), text };
      },
    },
  },
};
