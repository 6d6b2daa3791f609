"use strict";

// Code blocks get a button that copies them. Of a console, it copies the commands without prompt and output.
for (const block of document.querySelectorAll("article pre:not(.mermaid)")) {
  const code = block.querySelector("code") ?? block;
  block.tabIndex = 0;
  const frame = document.createElement("div"), button = document.createElement("button");
  frame.className = "block";
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const lines = code.textContent.trimEnd().split("\n"), commands = lines.filter(line => line.startsWith("$ "));
    const console = code.dataset.lang === "console" && commands.length;
    await navigator.clipboard.writeText(console ? commands.map(line => line.slice(2)).join("\n") : lines.join("\n"));
    button.textContent = "Copied";
    setTimeout(() => button.textContent = "Copy", 2000);
  });
  (block.closest(".highlight") ?? block).replaceWith(frame);
  frame.append(block, button);
}

for (const box of document.querySelectorAll("article input[type=checkbox]")) box.setAttribute("aria-label", "Done");

// The list of versions closes like a menu.
const versions = document.querySelector(".versions");
document.addEventListener("click", event => {
  if (versions && !versions.contains(event.target)) versions.open = false;
});
versions?.addEventListener("keydown", event => {
  if (event.key !== "Escape") return;
  versions.open = false;
  versions.querySelector("summary").focus();
});
// The fragment of the page in one version usually exists in another one as well.
versions?.addEventListener("click", event => {
  const link = event.target.closest("a");
  if (link && !link.querySelector("small")?.textContent.startsWith("without")) link.hash = location.hash;
});

// The navigation shows the current page.
const navigation = document.getElementById("navigation");
const here = navigation.querySelector("[aria-current]");
const show = () => {
  if (here) navigation.scrollTop += here.getBoundingClientRect().top - navigation.getBoundingClientRect().top - navigation.clientHeight / 3;
};
show();
navigation.addEventListener("toggle", show);

// The table of contents marks the section that is read: the last one whose heading is above the middle of the window.
const contents = new Map([...document.querySelectorAll("nav.toc a")].map(link => [decodeURIComponent(link.hash.slice(1)), link]));
const headings = [...document.querySelectorAll("article :is(h2, h3)[id]")].filter(heading => contents.has(heading.id));
const mark = () => {
  const current = headings.findLast(heading => heading.getBoundingClientRect().top < innerHeight / 3);
  for (const [id, link] of contents) {
    const changed = link.classList.toggle("current", id === current?.id) && id !== mark.last;
    if (changed) link.scrollIntoView({block: "nearest", behavior: "instant"});
  }
  mark.last = current?.id;
};
if (headings.length) {
  addEventListener("scroll", () => requestAnimationFrame(mark), {passive: true});
  mark();
}
