// Scroll to a message and highlight the words of a search, without changing its elements.

const SCROLL_FRAMES = 4; // the browser corrects its estimated heights while it draws

export async function showSearchResult(chat, seq, query) {
  const article = await chat.timeline.pager.loadMessage(Number(seq));
  if (!article) return;
  const ranges = findRanges(article, query);
  for (const range of ranges.slice(0, 1)) openFolds(range.startContainer.parentElement, article);
  globalThis.Highlight && CSS.highlights.set("found", new Highlight(...ranges));
  delete article.dataset.found;
  for (let frame = 0; frame < SCROLL_FRAMES; frame += 1) {
    chat.timeline.scrollToMessage(article, ranges[0]);
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  article.dataset.found = "";
}

function findRanges(article, query) {
  const terms = query.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const ranges = [];
  while (texts.nextNode()) {
    if (texts.currentNode.parentElement.closest(".recalled")) continue; // words of other messages
    const text = texts.currentNode.data.toLowerCase();
    for (const term of terms) {
      for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + term.length))
        ranges.push(createRange(texts.currentNode, at, term.length));
    }
  }
  return ranges;
}

function createRange(node, at, length) {
  const range = new Range();
  range.setStart(node, at);
  range.setEnd(node, Math.min(at + length, node.data.length));
  return range;
}

function openFolds(element, article) {
  for (
    let fold = element.closest("details");
    fold && article.contains(fold);
    fold = fold.parentElement.closest("details")
  )
    fold.open = true;
  element.closest("[data-long]")?.removeAttribute("data-long");
}
