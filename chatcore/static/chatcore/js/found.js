// Shows a message of the open chat, with the words in it that were looked for. The words are marked without touching the page's elements.

const FRAMES = 4; // heights that the browser had estimated become real while it draws

export async function reveal(chat, seq, words) {
  const article = await chat.timeline.stretch.reach(Number(seq));
  if (!article) return;
  const ranges = matches(article, words);
  for (const range of ranges.slice(0, 1)) unfold(range.startContainer.parentElement, article);
  globalThis.Highlight && CSS.highlights.set("found", new Highlight(...ranges));
  delete article.dataset.found;
  for (let frame = 0; frame < FRAMES; frame += 1) {
    chat.timeline.show(article);
    await new Promise((drawn) => requestAnimationFrame(drawn));
  }
  article.dataset.found = "";
}

function matches(article, words) {
  const terms = words.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const ranges = [];
  while (texts.nextNode()) {
    const text = texts.currentNode.data.toLowerCase();
    for (const term of terms) {
      for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + term.length))
        ranges.push(rangeOf(texts.currentNode, at, term.length));
    }
  }
  return ranges;
}

function rangeOf(node, at, length) {
  const range = new Range();
  range.setStart(node, at);
  range.setEnd(node, Math.min(at + length, node.data.length));
  return range;
}

function unfold(element, article) {
  for (
    let fold = element.closest("details");
    fold && article.contains(fold);
    fold = fold.parentElement.closest("details")
  )
    fold.open = true;
  element.closest("[data-long]")?.removeAttribute("data-long");
}
