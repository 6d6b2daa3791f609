"use strict";
// Mermaid draws the diagrams in the colors of the page, and again if those change.
const minScale = 0.6;
const dark = matchMedia("(prefers-color-scheme: dark)");
const sources = new Map([...document.querySelectorAll("pre.mermaid")].map(diagram => [diagram, diagram.textContent]));

async function draw() {
  const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    theme: "base",
    themeVariables: {
      darkMode: dark.matches,
      background: color("--ground"),
      primaryColor: color("--tint"),
      primaryTextColor: color("--strong"),
      primaryBorderColor: color("--accent"),
      secondaryColor: color("--raised"),
      tertiaryColor: color("--raised"),
      clusterBkg: color("--raised"),
      clusterBorder: color("--line"),
      lineColor: color("--muted"),
      textColor: color("--text"),
      edgeLabelBackground: color("--raised"),
      fontFamily: "Inter, system-ui, sans-serif",
      fontSize: "15px",
    },
  });
  document.documentElement.dataset.diagrams = "drawing";
  document.querySelectorAll(".zoom").forEach(button => button.remove());
  for (const [diagram, source] of sources) {
    diagram.removeAttribute("data-processed");
    diagram.textContent = source;
  }
  await document.fonts.ready;
  for (const diagram of sources.keys()) {
    try {
      await mermaid.run({nodes: [diagram]});
      zoomable(diagram);
    } catch (error) {
      console.error(error.str ?? error.message);
    }
  }
  document.documentElement.dataset.diagrams = "done";
}

// zoomable scrolls a diagram rather than drawing it too small to read. If it is smaller than its natural size, a button opens it
// in a dialog.
function zoomable(diagram) {
  const drawing = diagram.querySelector("svg"), width = drawing.viewBox.baseVal.width;
  drawing.style.minWidth = `${width * minScale}px`;
  if (drawing.getBoundingClientRect().width >= width) return;
  const button = document.createElement("button");
  button.className = "zoom";
  button.type = "button";
  button.textContent = "Enlarge";
  button.addEventListener("click", () => {
    const dialog = document.createElement("dialog"), close = document.createElement("button"), frame = document.createElement("div");
    dialog.className = "diagram";
    dialog.setAttribute("aria-label", "Diagram");
    close.type = "button";
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    frame.tabIndex = 0;
    frame.append(drawing.cloneNode(true));
    frame.firstChild.style.cssText = `width: ${width}px; max-width: none`;
    dialog.append(close, frame);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  });
  diagram.after(button);
}

let drawn = draw();
dark.addEventListener("change", () => drawn = drawn.then(draw));
