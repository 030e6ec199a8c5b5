// A line chart in SVG, read at a cursor: by pointer on the chart, by keys on the slider under it.
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 58, RIGHT = 14, TOP = 12, BOTTOM = 44;

export function element(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "line", "text", "circle", "rect"].includes(name);
  const made = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function shown(value) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return "∞";
  const size = Math.abs(value);
  if (size < 1e-3) {
    const [mantissa, exponent] = value.toExponential(2).split("e");
    return `${mantissa}·10${superscript(Number(exponent))}`;
  }
  return Number(value.toPrecision(4)).toString();
}

function superscript(n) {
  return String(n).replace("-", "⁻").replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
}

function linearTicks(low, high, about) {
  const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function logTicks(low, high, about) {
  const from = Math.ceil(Math.log10(low) - 1e-9), to = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((to - from + 1) / about));
  const ticks = [];
  for (let e = to; e >= from; e -= every) ticks.push(10 ** e);
  return ticks;
}

function tickLabel(value, log) {
  if (log && value < 0.001) return `10${superscript(Math.round(Math.log10(value)))}`;
  return String(Number(value.toPrecision(6)));
}

// spec: { x, series: [{name, label, y}], xLabel, yLabel, xWord, yWord, log, title, at }
export function chart(where, spec) {
  // Drawn for the width there is, so that letters keep their size; anew when that changes.
  where.watch?.disconnect();
  let width = where.clientWidth, read = spec.at;
  const again = () => drawn(where, { ...spec, at: read }, Math.max(260, width || 640), (value) => { read = value; });
  where.watch = new ResizeObserver(() => {
    if (Math.abs(where.clientWidth - width) < 1) return;
    width = where.clientWidth;
    again();
  });
  where.watch.observe(where);
  again();
}

function drawn(where, spec, WIDTH, moved) {
  const { x, series, log } = spec;
  const height = Math.round(Math.min(340, Math.max(230, WIDTH * 0.55)));
  const inner = { w: WIDTH - LEFT - RIGHT, h: height - TOP - BOTTOM };
  const floor = 1e-9;
  const highest = Math.max(...series.flatMap((s) => s.y));
  const top = log ? 1 : Math.min(1, Math.max(highest * 1.05, 1e-6));
  const low = log ? floor : 0;
  const x1 = x[x.length - 1];
  const px = (value) => LEFT + (inner.w * (value - x[0])) / (x1 - x[0]);
  const py = (value) => {
    const share = log ? Math.log(Math.max(value, floor) / low) / Math.log(top / low) : value / top;
    return TOP + inner.h * (1 - share);
  };
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": spec.title });
  for (const tick of log ? logTicks(low, top, 6) : linearTicks(0, top, 5)) {
    svg.append(element("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: py(tick), y2: py(tick) }),
      element("text", { x: LEFT - 8, y: py(tick) + 4, "text-anchor": "end" }, tickLabel(tick, log)));
  }
  for (const tick of linearTicks(x[0], x1, Math.max(3, Math.min(8, WIDTH / 75)))) {
    svg.append(element("line", { class: "axis", x1: px(tick), x2: px(tick), y1: TOP + inner.h, y2: TOP + inner.h + 5 }),
      element("text", { x: px(tick), y: TOP + inner.h + 19, "text-anchor": "middle" }, tickLabel(tick, false)));
  }
  svg.append(element("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: TOP + inner.h, y2: TOP + inner.h }),
    element("text", { x: LEFT + inner.w / 2, y: height - 6, "text-anchor": "middle" }, spec.xLabel),
    element("text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(13 ${TOP + inner.h / 2}) rotate(-90)` }, spec.yLabel));
  // The first, dashed, over the others: where two are equal both are seen.
  for (const one of [...series].reverse()) {
    let path = "", above = true;
    one.y.forEach((value, i) => {
      if (!above) return;
      path += `${i ? "L" : "M"}${px(x[i]).toFixed(1)} ${py(value).toFixed(1)}`;
      if (log && value < floor) above = false;
    });
    svg.append(element("path", { class: `line s-${one.name}`, d: path }));
  }
  const cursor = element("line", { class: "cursor", y1: TOP, y2: TOP + inner.h });
  const dots = series.map((one) => element("circle", { class: `dot f-${one.name}`, r: 4.5 }));
  svg.append(cursor, ...dots);

  const legend = element("ul", { class: "legend" });
  const values = series.map((one) => {
    const value = element("b");
    const key = element("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" }, element("line", { class: `line s-${one.name}`, x1: 0, x2: 26, y1: 4, y2: 4 }));
    legend.append(element("li", {}, key, `${one.label} ${spec.yWord} `, value));
    return value;
  });
  const at = element("span");
  const slider = element("input", { type: "range", min: 0, max: x.length - 1, step: 1 });
  const move = (i) => {
    const index = Math.max(0, Math.min(x.length - 1, i));
    slider.value = index;
    moved(x[index]);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, px(x[index]));
    const words = series.map((one, k) => {
      const text = shown(one.y[index]);
      values[k].textContent = text;
      dots[k].setAttribute("cx", px(x[index]));
      dots[k].setAttribute("cy", py(one.y[index]));
      return `${one.label} ${text}`;
    });
    at.textContent = `Read at ${spec.xWord} = ${shown(x[index])}`;
    slider.setAttribute("aria-valuetext", `${spec.xWord} ${shown(x[index])}: ${words.join(", ")}`);
  };
  slider.addEventListener("input", () => move(Number(slider.value)));
  const follow = (event) => {
    const box = svg.getBoundingClientRect();
    const share = (((event.clientX - box.left) * WIDTH) / box.width - LEFT) / inner.w;
    move(Math.round(share * (x.length - 1)));
  };
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  const at0 = spec.at === undefined ? Math.round((x.length - 1) / 4) : x.reduce((best, value, i) => (Math.abs(value - spec.at) < Math.abs(x[best] - spec.at) ? i : best), 0);
  where.replaceChildren(svg, element("div", { class: "reading" }, element("label", {}, at, slider), legend));
  move(at0);
}
