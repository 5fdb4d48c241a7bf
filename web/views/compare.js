// Runs beside each other: settings in which they differ, results, and what it took each to reach a target.

import { get } from "../api.js";
import { choice, el } from "../dom.js";
import { bytes, count, duration, number } from "../format.js";
import { plot } from "../plot.js";
import { differing, listRuns, lowerIsBetter, runsFor } from "../store.js";

const results = ["state", "steps", "test_accuracy", "test_loss", "val_accuracy", "val_loss", "train_loss", "seconds", "samples_per_s", "bytes", "weights_sha256"];
const formats = { seconds: duration, bytes, samples: count };

export async function open(node, values) {
  const all = (await listRuns("")).runs;
  const names = runsFor(values, all), runs = names.map(n => all.find(r => r.name === n)), keys = differing(runs);
  node.append(el("h1", {}, "Compare"));
  if (!names.length) { node.append(el("p", { class: "quiet" }, "No runs yet.")); return {}; }
  const shown = results.filter(k => runs.some(r => r.values[k] !== undefined));
  const cell = (r, k) => k === "weights_sha256" ? (r.values[k] ?? "").slice(0, 8) : (formats[k] ?? number)(r.values[k]);
  const table = columns => {
    const numeric = new Set(columns.filter(k => runs.some(r => typeof r.values[k] === "number")));
    return el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", {}, "run"), columns.map(k => el("th", { class: numeric.has(k) && "n" }, k)))),
      el("tbody", {}, runs.map(r => el("tr", {}, el("td", {}, el("a", { href: `#/run?run=${encodeURIComponent(r.name)}` }, r.name)),
        columns.map(k => el("td", { class: numeric.has(k) && "n" }, cell(r, k) || "-")))))));
  };
  node.append(el("h2", {}, "Result"), table(shown), el("h2", {}, "What differed"),
    keys.length ? table(keys) : el("p", { class: "quiet" }, "Their recipes do not differ."));

  const metrics = (await get("/api/metrics", { run: names })).filter(m => /^(test|val)_/.test(m) && m !== "tested_step");
  const state = { metric: metrics.find(m => m.endsWith("accuracy")) ?? metrics[0] ?? "train_loss", target: "" };
  const target = el("input", { type: "number", step: "any", "aria-label": "Target", size: 8, onchange: () => { state.target = target.value; draw(); } });
  const holder = el("div"), plots = el("div", { class: "plots" });
  let drawn = [];
  async function draw() {
    drawn.forEach(d => d.destroy());
    drawn = [];
    const best = runs.map(r => r.values[state.metric]).filter(v => typeof v === "number");
    if (state.target === "" && best.length) {
      state.target = lowerIsBetter(state.metric) ? Math.max(...best) : Math.min(...best);
      target.value = Number(state.target.toPrecision(4));
      state.target = target.value;
    }
    const reached = (await get("/api/reach", { run: names, metric: state.metric, target: state.target || 0, lower: lowerIsBetter(state.metric) ? 1 : 0 })).runs;
    holder.replaceChildren(el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["run", "seconds", "bytes", "samples", "step"].map((h, i) => el("th", { class: i && "n" }, i ? h + " to target" : h)))),
      el("tbody", {}, reached.map(r => el("tr", {}, el("td", {}, r.run), r.reached
        ? ["seconds", "bytes", "samples", "step"].map(k => el("td", { class: "n" }, (formats[k] ?? number)(r[k]) || "-"))
        : el("td", { colspan: 4, class: "quiet" }, "not reached")))))));
    plots.replaceChildren();
    for (const x of ["seconds", "bytes", "samples"]) {
      const { curves } = await get("/api/curves", { run: names, metric: state.metric, x, points: 600 });
      const some = curves.filter(c => c.x.length > 0).map(c => ({ name: c.run, x: c.x, y: c.y, at: names.indexOf(c.run) }));
      if (!some.length) continue;
      const card = el("section", { class: "card" });
      plots.append(card);
      drawn.push(plot(card, { title: `${state.metric} over ${x}`, x, curves: some, log: state.metric.endsWith("loss") }));
    }
  }
  node.append(el("h2", {}, "Time and bytes to a target"),
    el("div", { class: "bar" }, choice("metric", metrics.length ? metrics : ["train_loss"], state.metric, v => { state.metric = v; state.target = ""; draw(); }), el("label", {}, "target", target)),
    holder, el("h2", {}, "Curves"), plots);
  await draw();
  return { leave() { drawn.forEach(d => d.destroy()); } };
}
