// It runs in each page, and returns what Go evaluates: the width of the page, its diagrams, anchors, and links.
(async () => {
  const until = async state => {
    for (const end = Date.now() + 120000; Date.now() < end; await new Promise(r => setTimeout(r, 20))) if (state()) return;
  };
  const diagrams = [...document.querySelectorAll("pre.mermaid")];
  const drawn = diagram => {
    const drawing = diagram.querySelector("svg");
    return drawing && drawing.getAttribute("aria-roledescription") !== "error" && drawing.getBoundingClientRect().height > 0;
  };
  if (document.querySelector("script[src$='/diagrams.js']")) await until(() => document.documentElement.dataset.diagrams === "done");
  await until(() => document.fonts.status === "loaded");

  const width = document.documentElement.clientWidth, problems = [];
  const describe = element => `<${element.localName}> ${element.textContent.trim().replace(/\s+/g, " ").slice(0, 60)}`;
  if (document.documentElement.scrollWidth > width) {
    // The page scrolls sideways because of elements that no other element clips or scrolls.
    const over = [...document.body.querySelectorAll("*")].filter(element => {
      if (element.getBoundingClientRect().right <= width + 1) return false;
      for (let parent = element.parentElement; parent; parent = parent.parentElement) {
        if (getComputedStyle(parent).overflowX !== "visible") return parent === document.body;
      }
      return true;
    });
    problems.push(`is ${document.documentElement.scrollWidth} pixels wide, at ${over.length ? describe(over[0]) : "an unknown element"}`);
  }
  diagrams.forEach((diagram, i) => drawn(diagram) || problems.push(`does not render its diagram ${i + 1}`));
  const titles = document.querySelectorAll("h1").length;
  if (titles !== 1) problems.push(`has ${titles} headings of the first level`);
  for (const image of document.images) if (!image.naturalWidth) problems.push(`does not load the image ${image.src}`);
  return {
    problems,
    diagrams: diagrams.length,
    ids: [...document.querySelectorAll("[id], a[name]")].map(element => element.id || element.name),
    links: [...new Set([...document.querySelectorAll("a[href]")].map(link => link.href))],
  };
})()
