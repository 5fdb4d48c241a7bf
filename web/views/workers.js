// The workers' timeline: a row for the driving thread and each core of every rank, from the run's trace; who waited for
// whom. Wheel or + and - zoom, drag or the arrow keys move, 0 shows all.

import { get } from "../api.js";
import { choice, colour, el } from "../dom.js";
import { digitsOf, duration, number, roundMarks } from "../format.js";
import { listRuns, runFor } from "../store.js";

const rowHeight = 20, left = 128, top = 22;
const mostColumns = 32;  // a column for each rank; beyond, only the one that was waited for longest is named
const mostRows = 500;    // of the timeline: a canvas must not become taller than browsers can draw

export function kindOf(name, category) {
  if (category === "message") return "message";
  if (category === "forward") return "compute";
  if (category === "backward") return "backward";
  if (/^wait/.test(name)) return "waiting";
  if (/sum over|exchange/.test(name)) return "exchange";
  if (/update/.test(name)) return "update";
  return "other";
}
const kinds = { compute: "forward", backward: "backward", exchange: "exchange", waiting: "waiting", update: "update", message: "message sent", other: "step, evaluation" };

// Of many ranks: how long each has waited, and most of it for whom.
function manyWaits(ranks) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", {}, "rank"), ["compute", "exchange", "input", "waits"].map(h => el("th", { class: "n" }, h)), el("th", {}, "longest for"))),
    el("tbody", {}, ranks.map((r, i) => {
      const each = Object.entries(r.waiting_for_s), [whom, longest] = each.reduce((a, b) => b[1] > a[1] ? b : a, ["", 0]);
      return el("tr", {}, el("td", {}, i), [r.compute_s, r.exchange_s, r.input_s, each.reduce((sum, [, v]) => sum + v, 0)].map(v => el("td", { class: "n" }, duration(v))),
        el("td", {}, longest ? `rank ${whom}: ${duration(longest)}` : "-"));
    }))));
}

function waits(ranks) {
  if (ranks.length > mostColumns) return manyWaits(ranks);
  const most = Math.max(1e-9, ...ranks.flatMap(r => Object.values(r.waiting_for_s)));
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", {}, "rank"), ["compute", "exchange", "input"].map(h => el("th", { class: "n" }, h)), ranks.map((_, i) => el("th", { class: "n" }, `waits for ${i}`)))),
    el("tbody", {}, ranks.map((r, i) => el("tr", {}, el("td", {}, i), [r.compute_s, r.exchange_s, r.input_s].map(v => el("td", { class: "n" }, duration(v))),
      ranks.map((_, j) => { const v = r.waiting_for_s[j] ?? 0;
        return el("td", { class: "n", style: { background: v ? `color-mix(in srgb, var(--waiting) ${Math.round(65 * v / most)}%, transparent)` : "none" } }, v ? duration(v) : "-"); }))))));
}

export async function open(node, values) {
  const all = (await listRuns("")).runs, name = runFor(values, all);
  node.append(el("h1", {}, "Workers", name ? `: ${name}` : ""));
  if (!name) return {};
  node.append(el("div", { class: "bar" }, choice("run", all.map(r => r.name), name, v => { location.hash = `#/workers?run=${encodeURIComponent(v)}`; })));
  const run = await get("/api/run", { name });
  if (run.summary?.ranks) node.append(el("h2", {}, "Where the time went, and who waited for whom"), waits(run.summary.ranks));
  if (!run.has_trace) {
    node.append(el("p", { class: "quiet" }, "This run has no trace. Train with --trace to see what every core did when."));
    return {};
  }
  const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "Timeline of the workers" });
  const about = el("p", { class: "quiet", role: "status" }, " ");
  node.append(el("h2", {}, "Timeline"), canvas,
    el("div", { class: "legend" }, Object.entries(kinds).map(([k, text]) => el("span", {}, el("i", { class: "box", style: { background: `var(--${k})` } }), text))),
    about, el("p", { class: "quiet" }, "Wheel or + − zooms, drag or arrow keys move, 0 shows all. ui.perfetto.dev opens the same trace.json."));
  let data = await get("/api/trace", { run: name, dots: 1200 });
  if (data.rows.length > mostRows) about.before(el("p", { class: "quiet" }, `The picture has the first ${number(mostRows)} of ${number(data.rows.length)} rows.`));
  const shown = () => data.rows.slice(0, mostRows);
  const end = data.end, view = { from: 0, to: end };
  let pending = 0;

  function draw() {
    const width = Math.max(300, node.clientWidth), height = top + shown().length * rowHeight + 6, ratio = devicePixelRatio || 1;
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.setProperty("width", width + "px"); canvas.style.setProperty("height", height + "px");
    const c = canvas.getContext("2d"), scale = (width - left) / (view.to - view.from);
    c.scale(ratio, ratio);
    c.font = "12px system-ui, DejaVu Sans, sans-serif";
    c.textBaseline = "middle";
    c.fillStyle = colour("quiet");
    const marks = roundMarks(view.from, view.to, Math.max(2, Math.floor((width - left) / 110))), digits = digitsOf(marks);
    for (const at of marks) {
      const x = left + (at - view.from) * scale;
      c.textAlign = x > width - 30 ? "right" : x < left + 30 ? "left" : "center";
      c.fillText(duration(at, digits), x, 9);
      c.fillRect(x, top - 4, .5, height);
    }
    c.textAlign = "left";
    shown().forEach((row, r) => {
      const y = top + r * rowHeight;
      c.fillStyle = colour(row.core === 0 ? "text" : "quiet");
      c.fillText((row.core === 0 ? `rank ${row.rank} ` : "   ") + row.label, 2, y + rowHeight / 2, left - 6);
      c.save();
      c.beginPath(); c.rect(left, y, width - left, rowHeight); c.clip();
      for (const [begin, finish, nameAt, categoryAt] of row.bars) {
        const x = left + (begin - view.from) * scale, kind = kindOf(data.names[nameAt], data.names[categoryAt]), w = Math.max(kind === "message" ? 1.5 : .7, (finish - begin) * scale);
        c.fillStyle = colour(kind);
        const whole = data.names[nameAt] === "step" || data.names[nameAt] === "round";
        c.globalAlpha = whole ? .25 : 1;
        const inset = whole ? 1 : kind === "message" ? 7 : 3;
        c.fillRect(x, y + inset, w, rowHeight - 2 * inset);
        c.globalAlpha = 1;
        if (w > 60 && !whole) { c.fillStyle = "#fff"; c.fillText(data.names[nameAt], x + 4, y + rowHeight / 2, w - 8); }
      }
      c.restore();
    });
  }
  async function move(from, to) {
    const span = Math.min(end, Math.max(1e-6, to - from));
    view.from = Math.max(0, Math.min(from, end - span));
    view.to = view.from + span;
    draw();
    const mine = ++pending;
    const fresh = await get("/api/trace", { run: name, from: view.from, to: view.to, dots: 1200 });
    if (mine === pending) { data = fresh; draw(); }
  }
  const zoom = (factor, at = (view.from + view.to) / 2) => move(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const timeAt = e => view.from + (e.offsetX - left) / (canvas.clientWidth - left) * (view.to - view.from);
  canvas.addEventListener("wheel", e => { e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : .8, timeAt(e)); }, { passive: false });
  canvas.addEventListener("keydown", e => {
    const span = view.to - view.from;
    const does = { "+": () => zoom(.7), "=": () => zoom(.7), "-": () => zoom(1.4), ArrowLeft: () => move(view.from - span / 5, view.to - span / 5),
      ArrowRight: () => move(view.from + span / 5, view.to + span / 5), 0: () => move(0, end) }[e.key];
    if (does) { e.preventDefault(); does(); }
  });
  let held = null;
  canvas.addEventListener("pointerdown", e => { held = { x: e.offsetX, from: view.from, to: view.to }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", e => {
    if (held) { const by = (held.x - e.offsetX) / (canvas.clientWidth - left) * (held.to - held.from); move(held.from + by, held.to + by); return; }
    const row = data.rows[Math.floor((e.offsetY - top) / rowHeight)], t = timeAt(e);
    const bar = row?.bars.filter(b => b[0] <= t && t <= b[1]).at(-1);
    about.textContent = bar ? `rank ${row.rank} ${row.label}: ${data.names[bar[2]]} ${data.names[bar[3]] === "run" ? "" : data.names[bar[3]]}, ${duration(bar[1] - bar[0])} at ${duration(bar[0])}` : " ";
  });
  draw();
  const totals = await get("/api/trace/totals", { run: name });
  node.append(el("h2", {}, "What took longest"), el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["what", "kind", "times", "in all", "each"].map((h, i) => el("th", { class: i > 1 && "n" }, h)))),
    el("tbody", {}, totals.slice(0, 15).map(t => el("tr", {}, el("td", {}, t.name), el("td", {}, kinds[kindOf(t.name, t.category)]), el("td", { class: "n" }, number(t.count)), el("td", { class: "n" }, duration(t.seconds)), el("td", { class: "n" }, duration(t.seconds / t.count))))))));
  const resize = new ResizeObserver(draw);
  resize.observe(node);
  return { leave() { resize.disconnect(); } };
}
