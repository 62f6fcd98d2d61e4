// Inside the frame: draw the diagram that the page sends, and answer with its height.
"use strict";
(() => {
  // What a diagram cannot set by itself.
  const LOCKED = [
    "secure",
    "securityLevel",
    "startOnLoad",
    "maxTextSize",
    "maxEdges",
    "suppressErrorRendering",
    "htmlLabels",
    "flowchart",
    "class",
    "themeCSS",
    "dompurifyConfig",
  ];
  const place = document.getElementById("diagram");
  const answer = (data) => parent.postMessage(data, "*"); // this frame has no origin to name

  // A link would leave the page that is read; the page around forbids that, and it would look dead.
  function removeLinks() {
    for (const link of place.querySelectorAll("a"))
      for (const name of ["href", "xlink:href", "target"]) link.removeAttribute(name);
  }

  // A frame that is hidden, as in print, has no height.
  function sendHeight() {
    if (place.offsetHeight) answer({ height: place.offsetHeight });
  }

  async function draw({ text, isDark }) {
    document.documentElement.style.colorScheme = isDark ? "dark" : "light";
    globalThis.mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      suppressErrorRendering: true,
      htmlLabels: false, // labels are text of the drawing, and no elements of a page
      flowchart: { htmlLabels: false },
      class: { htmlLabels: false },
      secure: LOCKED,
      theme: isDark ? "dark" : "neutral",
      fontFamily: "system-ui, sans-serif",
    });
    const { svg } = await globalThis.mermaid.render("drawn", text);
    place.innerHTML = svg;
    removeLinks();
    new ResizeObserver(sendHeight).observe(place);
  }

  addEventListener("message", ({ source, data }) => {
    if (source === parent) draw(data).catch(() => answer({ height: 0 }));
  });
  answer({ isReady: true });
})();
