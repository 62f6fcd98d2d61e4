// List the sections of the settings beside them, and mark the one that is read.

const list = document.querySelector(".settings-list");
const links = new Map(); // section → its link

for (const section of document.querySelectorAll(".settings-body > section")) {
  const heading = section.querySelector("h2");
  if (!heading) continue;
  section.id ||= `section-${links.size}`;
  const link = document.createElement("a");
  link.href = `#${section.id}`;
  link.textContent = heading.textContent;
  links.set(section, link);
  list.append(link);
}

const visible = new Set();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries)
    visible[isIntersecting ? "add" : "delete"](target);
  const first = [...links.keys()].find((section) => visible.has(section));
  if (!first) return;
  for (const [section, link] of links)
    if (section === first) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
});
for (const section of links.keys()) observer.observe(section);
