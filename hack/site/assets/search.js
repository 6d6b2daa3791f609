"use strict";
// The search runs in the browser: it loads the sections of all pages of the release when it is opened.
{
  const {home, assets} = document.body.dataset;
  const dialog = document.querySelector("dialog.search"), input = dialog.querySelector("input");
  const results = dialog.querySelector("#results"), hint = dialog.querySelector(".hint");
  const maxResults = 20, length = 180;
  let index, selected = 0;

  const load = async () => {
    const script = new Promise((resolve, reject) => {
      const element = document.createElement("script");
      element.src = assets + "minisearch.js";
      element.onload = resolve;
      element.onerror = () => reject(new Error("cannot load the search"));
      document.head.append(element);
    });
    const [response] = await Promise.all([fetch(home + "search.json"), script]);
    if (!response.ok) throw new Error(`cannot load the pages: ${response.status}`);
    const engine = new MiniSearch({
      idField: "url",
      fields: ["page", "heading", "text"],
      storeFields: ["page", "heading", "text"],
      // Names such as spec.config.inline are found as a whole and by their parts.
      tokenize: text => text.split(/[^\p{L}\p{N}_.-]+/u).flatMap(word => {
        const parts = word.split(/[.-]+|(?<=\p{Ll})(?=\p{Lu})/u);
        return parts.length > 1 ? [word, ...parts] : [word];
      }).filter(Boolean),
      searchOptions: {
        boost: {page: 3, heading: 4}, prefix: true, fuzzy: word => word.length > 4 ? 0.2 : false, combineWith: "AND",
        boostDocument: url => /^(adr|development)\//.test(url) ? 0.5 : 1,
      },
    });
    engine.addAll(await response.json());
    return engine;
  };

  // excerpt returns the text around the first word that is found, with all of them marked.
  const excerpt = (text, words) => {
    const pattern = new RegExp(`(${words.map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu");
    const at = Math.max(0, text.search(pattern) - length / 4);
    const start = at && text.indexOf(" ", at) + 1;
    const rest = text.slice(start), end = rest.length > length ? rest.lastIndexOf(" ", length) : rest.length;
    const parts = (end < rest.length ? rest.slice(0, end) + " …" : rest).split(pattern);
    return [start ? "… " : "", ...parts.map((part, i) => {
      if (i % 2 === 0) return part;
      const mark = document.createElement("mark");
      mark.textContent = part;
      return mark;
    })];
  };

  const element = (name, ...children) => {
    const out = document.createElement(name);
    out.append(...children);
    return out;
  };

  const select = at => {
    const links = [...results.children];
    selected = links.length ? (at + links.length) % links.length : 0;
    links.forEach((link, i) => link.setAttribute("aria-selected", i === selected));
    links[selected]?.scrollIntoView({block: "nearest", behavior: "instant"});
    input.setAttribute("aria-expanded", links.length > 0);
    if (links.length) input.setAttribute("aria-activedescendant", links[selected].id);
    else input.removeAttribute("aria-activedescendant");
  };

  const search = async () => {
    const query = input.value.trim();
    try {
      const engine = await (index ??= load());
      if (query !== input.value.trim()) return;
      const found = query ? engine.search(query).slice(0, maxResults) : [];
      results.replaceChildren(...found.map((section, i) => {
        const link = element("a", element("strong", section.heading));
        if (section.page !== section.heading) link.append(element("small", section.page));
        if (section.text) link.append(element("span", ...excerpt(section.text, section.terms)));
        link.href = home + section.id;
        link.id = `result-${i}`;
        link.tabIndex = -1;
        link.setAttribute("role", "option");
        link.addEventListener("mousemove", () => selected !== i && select(i));
        return link;
      }));
      hint.textContent = !query ? "Enter one or more words." : found.length ? "" : `No section has “${query}”.`;
      select(0);
    } catch (error) {
      index = undefined;
      hint.textContent = `The search failed: ${error.message}. Check your connection, and try again.`;
    }
  };

  const open = () => {
    dialog.showModal();
    input.select();
    search();
  };
  document.querySelector("button.search").addEventListener("click", open);
  document.addEventListener("keydown", event => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (dialog.open || typing || !(event.key === "/" || event.key === "k" && (event.ctrlKey || event.metaKey))) return;
    event.preventDefault();
    open();
  });
  input.addEventListener("input", search);
  input.addEventListener("keydown", event => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step) select(selected + step);
    else if (event.key === "Enter") results.children[selected]?.click();
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", event => {
    if (event.target === dialog || event.target.closest("#results a")) dialog.close();
  });
}
