// Curves of several runs over steps, samples, time or bytes; runs that differ in their seed alone become a band.

import { get } from "../api.js";
import { check, choice, el } from "../dom.js";
import { banded, plot, smoothed } from "../plot.js";
import { differing, listRuns, runsFor } from "../store.js";

export const axes = ["step", "epoch", "samples", "seconds", "time", "bytes"];
const first = ["train_loss", "test_loss", "val_loss", "test_accuracy", "val_accuracy", "train_accuracy", "lr", "samples_per_s"];
const hidden = new Set(["seconds", "samples", "bytes", "tested_step"]);

export const inOrder = metrics => metrics.filter(m => !hidden.has(m))
  .sort((a, b) => ((first.indexOf(a) + 99) % 99 - (first.indexOf(b) + 99) % 99) || a.localeCompare(b));

// What a run is called in a band: everything in which the runs differ but the seed.
function nameWithoutSeed(run, keys) {
  const rest = keys.filter(k => !k.endsWith("seed"));
  return rest.length ? rest.map(k => `${k.split(".").at(-1)}=${run.values[k] ?? "-"}`).join(" ") : run.values.title ?? run.values.model ?? "runs";
}

export async function open(node, values) {
  const all = (await listRuns("")).runs;
  if (!all.length) { node.append(el("h1", {}, "Curves"), el("p", { class: "quiet" }, "No runs yet.")); return {}; }
  const names = runsFor(values, all), runs = names.map(n => all.find(r => r.name === n)), keys = differing(runs);
  const state = { x: "step", smooth: 1, log: true, bands: false };
  const metrics = inOrder(await get("/api/metrics", { run: names }));
  const holder = el("div", { class: "plots" });
  const cards = new Map();

  async function draw(metric, range = {}) {
    const { curves } = await get("/api/curves", { run: names, metric, x: state.x, points: 1000, ...range });
    let shown = curves.filter(c => c.x.length).map(c => ({ name: c.run, at: state.bands ? undefined : names.indexOf(c.run), x: c.x, y: smoothed(c.y, metric.startsWith("train_") ? state.smooth : 1), points: c.points }));
    if (state.bands) shown = banded(shown.map(c => ({ ...c, name: nameWithoutSeed(runs.find(r => r.name === c.name), keys) })));
    const card = cards.get(metric);
    card.drawn?.destroy();
    card.range = range;
    card.node.hidden = shown.length === 0;
    if (!shown.length) return;
    card.drawn = plot(card.node, { title: metric, x: state.x, log: state.log && metric.endsWith("loss"), curves: shown,
      zoom: (from, to) => draw(metric, from === undefined ? {} : { from, to }) });
  }
  for (const m of metrics) {
    const card = { node: el("section", { class: "card", "data-metric": m }) };
    cards.set(m, card);
    holder.append(card.node);
  }
  const redraw = () => Promise.all(metrics.map(m => draw(m)));
  const smooth = el("input", { type: "range", min: 1, max: 50, value: 1, "aria-label": "Smoothing", oninput: () => { state.smooth = Number(smooth.value); redraw(); } });

  node.append(el("h1", {}, names.length === 1 ? names[0] : `${names.length} runs`),
    el("div", { class: "bar" }, choice("over", axes, state.x, v => { state.x = v; redraw(); }),
      el("label", {}, "smoothing", smooth), check("logarithmic losses", state.log, v => { state.log = v; redraw(); }),
      check("seeds as bands", state.bands, v => { state.bands = v; redraw(); }),
      el("span", { class: "quiet" }, "drag to zoom, double click to go back")),
    holder);
  await redraw();
  return { changed(changed) { if (changed.some(n => names.includes(n))) for (const [m, c] of cards) draw(m, c.range); },
           leave() { for (const c of cards.values()) c.drawn?.destroy(); } };
}
