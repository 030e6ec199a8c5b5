// The curves of a budget in two views, and those of the playground.
import { chart, element } from "./chart.js";

const LABELS = { capacity: "capacity", spent: "spent, as charged", remaining: "remaining", guarantee: "promised" };
let charts = 0;

function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

function choice(name, value, label, checked) {
  const input = element("input", { type: "radio", name, value });
  input.checked = checked;
  return element("label", {}, input, label);
}

export function budgetChart(where, found) {
  const parts = Object.keys(LABELS).filter((part) => found[part] && !(part === "guarantee" && same(found.guarantee, found.capacity)));
  if (!parts.length) {
    where.textContent = "This filter's amounts have no curve.";
    return;
  }
  const name = `view-${++charts}`;
  const views = element("fieldset", {}, element("legend", {}, "View"), choice(name, "hockey_stick", "Hockey stick (δ over ε)", true), choice(name, "tradeoff", "Tradeoff (errors of a test)", false));
  const log = element("input", { type: "checkbox" });
  const scale = element("label", {}, log, "δ on a log scale");
  const plot = element("div");
  const render = () => {
    const view = views.querySelector("input:checked").value, stick = view === "hockey_stick";
    const [across, up] = stick ? ["eps", "delta"] : ["alpha", "beta"];
    scale.hidden = !stick;
    chart(plot, {
      x: found[parts[0]][view][across],
      series: parts.map((part) => ({ name: part, label: LABELS[part], y: found[part][view][up] })),
      xLabel: stick ? "ε" : "type I error α (a false alarm)",
      yLabel: stick ? "δ(ε)" : "type II error β (a miss)",
      xWord: stick ? "ε" : "α",
      yWord: stick ? "δ" : "β",
      log: stick && log.checked,
      title: stick
        ? `Privacy curves: delta over epsilon for ${parts.map((part) => LABELS[part]).join(", ")}. Lower is more private. The slider below reads values.`
        : `Tradeoff curves: type II over type I error of the best test, for ${parts.map((part) => LABELS[part]).join(", ")}. Higher is more private. The slider below reads values.`,
    });
  };
  views.addEventListener("change", render);
  log.addEventListener("change", render);
  where.replaceChildren(element("div", { class: "tools" }, views, scale), plot);
  render();
}

export function playChart(where, found) {
  const labels = { promised: "promised", natural: "natural", residue: "residue" };
  chart(where, {
    x: found.eps,
    series: Object.keys(labels).map((name) => ({ name, label: labels[name], y: found.delta[name] })),
    xLabel: "ε",
    yLabel: "δ(ε)",
    xWord: "ε",
    yWord: "δ",
    at: 1.395,
    title: "Delta over epsilon: the promise, and what your strategy reaches against the natural and the residue filter. The slider below reads values.",
  });
}
