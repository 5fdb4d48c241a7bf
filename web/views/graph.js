// The network of a run: its layers in order, an arrow from each to every one that reads what it gives, with shapes, weights, FLOPs, and the time each took where there is a trace.

import { get } from "../api.js";
import { choice, el } from "../dom.js";
import { bytes, count, duration, percent } from "../format.js";
import { listRuns, runFor } from "../store.js";

export async function open(node, values) {
  const all = (await listRuns("")).runs, name = runFor(values, all);
  node.append(el("h1", {}, "Graph", name ? `: ${name}` : ""));
  if (!name) return {};
  node.append(el("div", { class: "bar" }, choice("run", all.map(r => r.name), name, v => { location.hash = `#/graph?run=${encodeURIComponent(v)}`; })));
  const graph = await get("/api/graph", { run: name });
  const run = await get("/api/run", { name });
  const times = new Map();
  if (run.has_trace) for (const t of await get("/api/trace/totals", { run: name })) {
    if ((t.category !== "forward" && t.category !== "backward") || / (send|receive)$/.test(t.name)) continue;  // waiting for another stage is no work of a layer
    const layer = t.name.slice(0, t.name.lastIndexOf(" "));
    times.set(layer, (times.get(layer) ?? 0) + t.seconds);
  }
  // Where a layer is: in a split model some ranks have it (a layer cut into parts has several places), else all.
  const plan = run.cluster?.plan, workers = run.cluster?.ranks?.length ?? run.values.workers ?? 1;
  const places = layer => (plan?.stages ?? []).filter(s => s.layers.includes(layer));
  const ranksOf = ranks => `rank${ranks.length > 1 ? "s" : ""} ${ranks.join(", ")}`;
  const fused = layer => { const from = graph.layers.find(l => l.layer === layer).from[0]; return from === undefined ? "-" : `with ${graph.layers[from].layer}`; };
  const placed = layer => !plan ? (workers > 1 ? `every one of ${workers} ranks` : "rank 0") : places(layer).map(s => `stage ${s.stage}${s.part ? `.${s.part}` : ""}, ${ranksOf(s.ranks)}`).join("; ") || fused(layer);  // part of another layer's operation
  const timed = times.size > 0;
  const sliced = graph.layers.some(l => (l.slices ?? 1) > 1);
  const total = graph.layers.reduce((sum, l) => sum + (times.get(l.layer) ?? 0), 0), flops = Math.max(1, ...graph.layers.map(l => l.flops ?? 0));
  const rowHeight = 56, left = 64, width = 640 + left, height = graph.layers.length * rowHeight + 40;
  // To the next layer straight down, to a later one around those between them.
  const edges = (layer, i) => !layer.from.length && i === 0 ? [`M${left + 130} 24 V34`] : layer.from.map(j => {
    const y = 56 + j * rowHeight, to = 50 + i * rowHeight, out = left - Math.min(left - 6, 18 + 8 * Math.abs(i - j));
    return j === i - 1 ? `M${left + 130} ${78 + j * rowHeight} V${34 + i * rowHeight}` : `M${left} ${y} C${out} ${y} ${out} ${to} ${left} ${to}`;
  });
  node.append(el("p", {}, `${graph.model}: ${count(graph.weights)} weights, ${count(graph.forward_flops_per_sample)} FLOPs a sample forward, ${count(graph.training_flops_per_sample)} in training; `,
      `a step on ${graph.batch} samples takes ${bytes(graph.step_bytes)}.`),
    el("div", { class: "plots" },
      el("div", { class: "card scroll" }, el("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": `${graph.layers.length} layers` },
        el("text", { x: left, y: 18, class: "quiet" }, `input ${graph.input}`),
        graph.layers.flatMap((l, i) => edges(l, i).map(d => el("path", { class: "wire edge", d }))),
        graph.layers.map((l, i) => el("g", {},
          el("rect", { class: "node", x: left, y: 34 + i * rowHeight, width: 260, height: 44, rx: 7 }),
          el("rect", { x: left, y: 74 + i * rowHeight, width: 260 * (l.flops ?? 0) / flops, height: 4, rx: 2, fill: "var(--compute)" }),
          el("text", { x: left + 12, y: 53 + i * rowHeight }, l.layer), el("text", { x: left + 12, y: 69 + i * rowHeight, class: "quiet" }, l.operations.length > 38 ? l.operations.slice(0, 37) + "…" : l.operations),
          el("text", { x: left + 276, y: 53 + i * rowHeight }, Array.isArray(l.output) ? `${l.output.join(" × ")}, ${bytes(4 * l.output.reduce((a, b) => a * b, 1))}` : l.output),
          el("text", { x: left + 276, y: 69 + i * rowHeight, class: "quiet" }, `${l.weights ? count(l.weights) + " weights, " : ""}${count(l.flops)} FLOPs${times.has(l.layer) ? `, ${percent(times.get(l.layer) / total)} of the time` : ""}`))))),
      el("div", {}, el("div", { class: "scroll" }, el("table", {},
        el("thead", {}, el("tr", {}, ["layer", "output", "weights", "FLOPs", timed && "time", sliced && "slices", "placement"].filter(Boolean).map(h => el("th", { class: !["layer", "output", "placement"].includes(h) && "n" }, h)))),
        el("tbody", {}, graph.layers.map(l => el("tr", {}, el("td", {}, l.layer), el("td", {}, Array.isArray(l.output) ? l.output.join("×") : l.output), el("td", { class: "n" }, count(l.weights)), el("td", { class: "n" }, count(l.flops)), timed && el("td", { class: "n" }, duration(times.get(l.layer))), sliced && el("td", { class: "n" }, l.slices ?? 1), el("td", {}, placed(l.layer))))))),
        el("h2", {}, "Memory of a step"), el("div", { class: "scroll" }, el("table", {}, el("tbody", {},
          (graph.phases ?? []).map(p => el("tr", {}, el("td", {}, `activations, ${p.phase}`), el("td", { class: "n" }, bytes(p.arena_bytes)), el("td", { class: "quiet" }, `${bytes(p.without_reuse_bytes)} without reuse`))),
          el("tr", {}, el("td", {}, "parameters"), el("td", { class: "n" }, bytes(graph.parameter_bytes)), el("td")), el("tr", {}, el("td", {}, "contributions of a shard"), el("td", { class: "n" }, bytes(graph.contribution_bytes)), el("td"))))),
        plan && el("p", {}, `Split by the plan ${plan.plan}.`),
        !run.has_trace && el("p", { class: "quiet" }, "Train with --trace to see how long each layer took."))));
  return {};
}
