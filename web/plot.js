// Curves with uPlot: several runs in one picture, each with its own x values, seeds as a band. Drag to zoom: the server
// is asked for the exact points of what is seen; a double click goes back.

import uPlot from "./uPlot.js";
import { el, seriesColour, colour } from "./dom.js";
import { bytes, count, duration, mark, number } from "./format.js";

const xFormats = { seconds: duration, time: duration, bytes, samples: count };
const powersOfTwo = [...Array(60).keys()].map(k => 2 ** k);  // bytes are written in KiB, MiB, ...

// All curves on the union of their x values; what a curve does not have is null, and drawn through.
function aligned(curves) {
  const x = [...new Set(curves.flatMap(c => c.x))].sort((a, b) => a - b);
  const at = new Map(x.map((value, i) => [value, i]));
  return [x, ...curves.map(c => {
    const y = new Array(x.length).fill(null);
    c.x.forEach((value, i) => { y[at.get(value)] = c.y[i]; });
    return y;
  })];
}

// Whether a number has one digit and zeros: what a logarithmic axis says.
const round = v => { const digit = v / 10 ** Math.floor(Math.log10(v) + 1e-9); return Math.abs(digit - Math.round(digit)) < 1e-6; };

// The value of a curve at x, between its points.
function valueAt(curve, x) {
  const n = curve.x.length;
  if (n === 0 || x < curve.x[0] || x > curve.x[n - 1]) return null;
  let low = 0, high = n - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (curve.x[middle] <= x) low = middle; else high = middle; }
  if (n === 1 || curve.x[high] === curve.x[low]) return curve.y[low];
  return curve.y[low] + (curve.y[high] - curve.y[low]) * (x - curve.x[low]) / (curve.x[high] - curve.x[low]);
}

// The point of a curve that is nearest to x: what a curve is said to be there is always one of its own numbers.
export function nearest(curve, x) {
  const n = curve.x.length;
  if (n === 0 || x < curve.x[0] || x > curve.x[n - 1]) return null;
  let low = 0, high = n - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (curve.x[middle] <= x) low = middle; else high = middle; }
  return x - curve.x[low] <= curve.x[high] - x ? curve.y[low] : curve.y[high];
}

// Curves of one name become their mean, and the lowest and highest of them.
export function banded(curves) {
  const groups = Map.groupBy ? Map.groupBy(curves, c => c.name)
    : curves.reduce((m, c) => m.set(c.name, [...(m.get(c.name) ?? []), c]), new Map());
  return [...groups].map(([name, members]) => {
    if (members.length === 1) return members[0];
    const x = [...new Set(members.flatMap(c => c.x))].sort((a, b) => a - b), low = [], high = [], y = [];
    for (const at of x) {
      const values = members.map(c => valueAt(c, at)).filter(v => v !== null);
      y.push(values.reduce((a, b) => a + b, 0) / values.length);
      low.push(Math.min(...values));
      high.push(Math.max(...values));
    }
    return { name: `${name} (${members.length})`, x, y, low, high };
  });
}

export function smoothed(y, window) {
  if (window <= 1) return y;
  const keep = 1 - 1 / window;
  let mean = 0, weight = 0;
  return y.map(v => { mean = keep * mean + (1 - keep) * v; weight = keep * weight + (1 - keep); return mean / weight; });
}

// curves: [{name, x, y, low?, high?, at?}], `at`: which colour; its place in the list if there is none. zoom(from, to) is called when a range is chosen, zoom() when all is wanted again.
export function plot(node, { title, x, log = false, curves, height = 260, zoom }) {
  const values = curves.flatMap(c => c.y).filter(v => v > 0), spread = values.length ? values.reduce((a, b) => Math.max(a, b)) / values.reduce((a, b) => Math.min(a, b)) : 1;
  log = log && spread > 8;  // within less than a decade the logarithm says nothing, and has no marks
  const flat = [], bands = [], series = [{ label: x }];
  curves.forEach((c, i) => {
    const stroke = seriesColour(c.at ?? i);
    if (c.low) {
      const first = flat.length + 1;
      flat.push({ x: c.x, y: c.high }, { x: c.x, y: c.low });
      const hidden = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
      series.push({ label: c.name + " highest", ...hidden }, { label: c.name + " lowest", ...hidden });
      bands.push({ series: [first, first + 1], fill: stroke + "33" });
    }
    flat.push(c);
    series.push({ label: c.name, stroke, width: 1.6, spanGaps: true, points: { show: c.x.length < 40, size: 4 },
                  value: (_, v) => number(v) });
  });
  const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 },
                 font: "12px system-ui, DejaVu Sans, sans-serif" };
  const options = {
    height, series, bands, legend: { show: false }, padding: [8, 20, 0, 0],  // the last mark's text is wider than its place
    cursor: { drag: { x: true, y: false, setScale: false }, focus: { prox: 16 } },
    scales: { x: { time: false }, y: log ? { distr: 3, range: (_, low, high) => low > 0 ? [low * .9, high * 1.1] : [.1, 1] } : {} },  // nothing in sight
    axes: [{ ...axis, space: 70, size: 34, ...(x === "bytes" && { incrs: powersOfTwo }), values: (_, ticks) => ticks.map(v => (xFormats[x] ?? mark)(v)) },
           { ...axis, size: 62, values: (_, ticks) => ticks.map(v => v === null || (log && !round(v)) ? "" : mark(v)) }],
    hooks: {
      setSelect: [u => {
        if (u.select.width < 4) return;
        zoom?.(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      }],
      setCursor: [u => {
        const i = u.cursor.idx, at = i === null || i === undefined ? undefined : u.data[0][i];
        readout.textContent = at === undefined ? "" : `${x} ${(xFormats[x] ?? number)(at)}`;
        curves.forEach((c, k) => { const v = at === undefined ? null : nearest(c, at); readings[k].textContent = v === null ? "" : ` ${number(v)}`; });
      }],
    },
  };
  const readout = el("span", { class: "quiet" });
  const readings = curves.map(() => el("b"));  // of each curve where the cursor is
  const legend = el("div", { class: "legend" }, curves.map((c, i) =>
    el("span", {}, el("i", { style: { background: seriesColour(c.at ?? i) } }), c.name, readings[i])), readout);
  const holder = el("div", { role: "img", "aria-label": `${title} over ${x}: ${curves.map(c => `${c.name} ends at ${number(c.y.at(-1))}`).join(", ")}` });
  node.replaceChildren(el("h3", {}, title), holder, legend);
  const width = () => Math.max(240, holder.clientWidth);
  const u = new uPlot({ ...options, width: width() }, log ? aligned(flat).map((column, i) => i ? column.map(v => v > 0 ? v : null) : column) : aligned(flat), holder);
  u.over.addEventListener("dblclick", () => zoom?.());
  const resize = new ResizeObserver(() => { if (Math.abs(width() - u.width) > 8) u.setSize({ width: width(), height }); });
  resize.observe(node);
  return { destroy() { resize.disconnect(); u.destroy(); } };
}
