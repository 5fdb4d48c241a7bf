// Runs that were trained under a plan or by several workers: what each was split into, what was predicted of it, and what
// came of it.

import { el } from "../dom.js";
import { bytes, duration, number, percent } from "../format.js";
import { listRuns } from "../store.js";

const predicted = (r, key, format) => el("td", { class: "n" }, r.values[key] !== undefined ? format(r.values[key]) : "-");

export async function open(node) {
  const runs = (await listRuns("")).runs.filter(r => (r.values.workers ?? 1) > 1 || r.values.plan);
  node.append(el("h1", {}, "Plans"));
  if (!runs.length) { node.append(el("p", { class: "quiet" }, "No run of several workers yet. Try: echelon train recipes/demo.toml --workers 4 --plan pipeline=2")); return {}; }
  node.append(el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["run", "plan", "workers", "samples/s", "seconds", "bytes a step", "predicted", "idle", "predicted", "share of the peak"].map((h, i) => el("th", { class: i > 1 && "n" }, h)))),
    el("tbody", {}, runs.map(r => el("tr", {}, el("td", {}, el("a", { href: `#/run?run=${encodeURIComponent(r.name)}` }, r.name)), el("td", {}, r.values.plan ?? r.values.composed_from ?? "every worker has the whole model"),
      el("td", { class: "n" }, number(r.values.workers)), el("td", { class: "n" }, number(r.values.samples_per_s)), el("td", { class: "n" }, duration(r.values.seconds)),
      el("td", { class: "n" }, r.values.bytes > 0 ? bytes(r.values.bytes / r.values.steps) : "-"), predicted(r, "predicted_bytes_per_step", bytes), predicted(r, "idle", percent), predicted(r, "predicted_idle", percent),
      el("td", { class: "n" }, r.values.peak_share !== undefined ? percent(r.values.peak_share) : "")))))));
  return {};
}
