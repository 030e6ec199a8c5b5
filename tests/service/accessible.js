// What is wrong with a page for who cannot see, or not well.
() => {
  const wrong = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const seen = (e) => e.checkVisibility();
  const told = (what, e) => wrong.push(`${what}: ${e.outerHTML.slice(0, 80)}`);
  const named = (e) => (e.getAttribute("aria-label") || e.textContent || "").trim() !== "";

  for (const e of all("input, select, textarea")) {
    if (e.type !== "hidden" && seen(e) && !(e.labels.length && named(e.labels[0]))) told("no label", e);
  }
  for (const e of all("button, a[href]")) if (!named(e)) told("no name", e);
  for (const e of all("svg")) {
    const hidden = e.getAttribute("aria-hidden") === "true";
    const image = e.getAttribute("role") === "img" && e.getAttribute("aria-label");
    if (!hidden && !image) told("no words for a picture", e);
  }
  for (const e of all("img")) if (!e.hasAttribute("alt")) told("no alt", e);
  for (const e of all("th")) if (!e.scope) told("no scope", e);

  const levels = all("h1, h2, h3, h4").filter(seen).map((e) => Number(e.tagName[1]));
  const jumps = levels.some((level, i) => i > 0 && level > levels[i - 1] + 1);
  if (levels[0] !== 1 || levels.filter((level) => level === 1).length !== 1 || jumps) wrong.push(`headings: ${levels}`);
  for (const one of ["main", "header", "nav"]) if (!document.querySelector(one)) wrong.push(`no ${one}`);
  if (!document.documentElement.lang || !document.title) wrong.push("no language or title");

  const ids = all("[id]").map((e) => e.id);
  if (new Set(ids).size !== ids.length) wrong.push("an id twice");
  for (const attribute of ["aria-labelledby", "aria-describedby"]) {
    for (const e of all(`[${attribute}]`)) {
      for (const id of e.getAttribute(attribute).split(" ")) if (!document.getElementById(id)) told("names nothing", e);
    }
  }

  // Contrast of text, WCAG 2.1, 1.4.3.
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = color.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = numbers(getComputedStyle(e).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  for (const e of all("main *, header *")) {
    const text = [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (e instanceof SVGElement || !text || !seen(e)) continue;
    const pair = [luminance(numbers(getComputedStyle(e).color).slice(0, 3)), luminance(behind(e))];
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < 4.5) told(`contrast ${ratio.toFixed(2)}`, e);
  }
  return wrong;
}
