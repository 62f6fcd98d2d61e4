// unfold colors JSON in a pre with a style; its spans are its own.
// What must not stand in a page, wherever its texts came from: returns a list of what does. Of `page`, this document or one parsed from a text.
globalThis.audit = (page) => {
  const ASKING = [
    "href",
    "xlink:href",
    "src",
    "srcset",
    "action",
    "formaction",
    "poster",
    "data",
    "ping",
    "background",
    "cite",
    "lowsrc",
  ];
  const FORBIDDEN =
    "iframe, frame, frameset, object, embed, applet, base, meta[http-equiv=refresh], meta[http-equiv=refresh i], video, audio, portal, plaintext, xmp";
  const PLAIN =
    ".user .words, .copy-tool pre, .copy-head h1, .reasoning .words, .call pre, .call-name, .chat-title, .found-title, .sent pre, .turn-error p > span, .notice-words, .file-name, .diff > *, .card-facts > *, .targets span, .kept span, .readonly pre:not([style])";
  const IN_PROSE = new Set(
    "a b blockquote br button code del div em figcaption figure h1 h2 h3 h4 h5 h6 hr i img kbd li mark ol p pre s span strong sub sup table tbody td th thead tr ul".split(
      " ",
    ),
  );
  const ON_PROSE = new Set(
    "href title alt src class start align colspan rowspan target rel type tabindex data-copy-code data-copied data-shows-diagram aria-label role".split(
      " ",
    ),
  );
  const OURS =
    /(^|\s)(menu|dialog|drawer|dock|composer|card|message|answer|user|notice|line|turn-error|palette|snackbar|drop|context|hidden|visually-hidden)(\s|$)/;
  const OUR_ATTRIBUTES =
    /^(id|name|is|slot|part|popover|form|command|contenteditable|accesskey|autofocus|draggable)/;
  const admin = page.querySelector("body[data-admin-utc-offset]") !== null;
  const wrong = [];
  const object = (element, why) => wrong.push(`${why}: ${element.outerHTML.slice(0, 160)}`);

  const asks = (element, name, value) => {
    let address;
    try {
      address = new URL(value, location.origin);
    } catch {
      return object(element, `${name} is no address`);
    }
    if (
      element.matches("a[href]") &&
      name === "href" &&
      ["http:", "https:", "mailto:"].includes(address.protocol)
    ) {
      const leaves = address.origin !== location.origin;
      if (
        element.closest(".prose") &&
        !value.startsWith("#note-") && // a footnote of the same message
        !(element.target === "_blank" && element.relList.contains("noopener"))
      )
        object(element, "a link that keeps this page");
      if (leaves && !element.closest(".prose") && !admin) object(element, "a link that leaves");
    } else if (element.matches("img") && /^data:image\/(png|jpeg|gif|webp)[;,]/.test(value)) return;
    else if (address.origin !== location.origin || !["http:", "https:"].includes(address.protocol))
      object(element, `${name} asks elsewhere`);
  };

  for (const element of page.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      if (/^on|^(data-)?hx-on|^is$|^srcdoc$/.test(name)) object(element, name);
      if (ASKING.includes(name)) asks(element, name, value);
      if (name === "style" && /url\s*\(|image-set|expression|@import/i.test(value))
        object(element, "a style that asks");
    }
    if (
      element.matches("script") &&
      !/^\/(static|admin\/jsi18n)\//.test(element.getAttribute("src")) &&
      element.type !== "application/json"
    )
      object(element, "a script");
    if (element.matches("style") && !admin) object(element, "a style");
    if (element.matches(FORBIDDEN)) object(element, "forbidden");
    if (/^js:|^javascript:/.test(element.getAttribute("hx-vals") ?? "")) object(element, "hx-vals");
  }
  for (const element of page.querySelectorAll(PLAIN))
    if (element.childElementCount) object(element, "elements in a plain text");
  for (const element of page.querySelectorAll(".prose *")) {
    const formula = element.closest(".katex, .katex-error, .katex-display");
    const tag = element.tagName.toLowerCase();
    if (OURS.test(element.getAttribute("class") ?? ""))
      object(element, "a class of the page's own");
    if ([...element.attributes].some(({ name }) => OUR_ATTRIBUTES.test(name)))
      object(element, "a name of the page's own");
    if (page === document && ["fixed", "sticky"].includes(getComputedStyle(element).position))
      object(element, "it leaves its place");
    if (formula) continue; // math has tags and styles of its own
    if (!IN_PROSE.has(tag)) object(element, "no element of a text");
    const { dataset } = element;
    if (tag === "button" && !("copyCode" in dataset || "showsDiagram" in dataset))
      object(element, "a button");
    for (const { name } of element.attributes)
      if (!ON_PROSE.has(name)) object(element, `no attribute of a text, ${name}`);
  }
  for (const name of ["ran", "alert", "location", "history"])
    if (page === document && globalThis[name] instanceof Element)
      wrong.push(`${name} is an element`);
  return wrong;
};
