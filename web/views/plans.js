// Runs that were trained under a plan or by several workers, or predicted: what each was split into, and what came of it
// beside what was predicted.

import { el } from "../dom.js";
import { bytes, duration, number, offBy, percent } from "../format.js";
import { listRuns } from "../store.js";

// What was measured; below it what was predicted, and by how much that was off.
function beside(measured, predicted, format, relative = true) {
  const there = v => typeof v === "number";
  const off = relative && there(measured) && there(predicted) && measured > 0 ? ` (${offBy(predicted, measured)})` : "";
  return el("td", { class: "n" }, there(measured) ? format(measured) : "-", there(predicted) && el("div", { class: "quiet" }, `${format(predicted)}${off}`));
}

// The name of what a run was split into.
const planOf = v => v.plan ?? v.composed_from ?? ((v.workers ?? 1) > 1 ? "every worker has the whole model" : "one worker");

// Of the rank that had most; a run under a plan counts what each allocates.
const mostMemory = v => Object.entries(v).reduce((most, [key, value]) => key.startsWith("system.bytes_rank_") ? Math.max(most, value) : most, 0);

function row({ name, values: v }) {
  const stepTime = v.samples_per_s > 0 ? v["train.batch"] / v.samples_per_s : undefined;
  const perStep = v.bytes >= 0 && v.steps > 0 ? v.bytes / v.steps : undefined;
  return el("tr", {}, el("td", {}, el("a", { href: `#/run?run=${encodeURIComponent(name)}` }, name)), el("td", { class: "wrap" }, planOf(v).split(",").map((part, i) => i ? [",", el("wbr"), part] : part)),
    el("td", { class: "n" }, number(v.workers ?? 1)), el("td", { class: "n" }, number(v.samples_per_s) || "-"),
    beside(v["measured.seconds"] ?? stepTime, v["predicted.seconds"], duration),
    beside(v["measured.bytes"] || mostMemory(v) || undefined, v["predicted.bytes"], bytes),
    beside(perStep, v.predicted_bytes_per_step ?? v["predicted.sent_bytes"], bytes),
    beside(v.idle ?? v["measured.waiting_share"], v.predicted_idle ?? v["predicted.waiting_share"], percent, false),
    el("td", { class: "n" }, v.peak_share !== undefined ? percent(v.peak_share) : "-"));
}

export async function open(node) {
  const heads = ["run", "plan", "workers", "samples/s", "time of a step", "memory of a rank", "bytes a step", "idle", "share of the peak"];
  async function draw() {
    const runs = (await listRuns("")).runs.filter(r => (r.values.workers ?? 1) > 1 || r.values.plan || r.values["predicted.seconds"]);
    node.replaceChildren(el("h1", {}, "Plans"));
    if (!runs.length) return node.append(el("p", { class: "quiet" }, "No run of several workers yet. Try: echelon train recipes/demo.toml --workers 4 --plan pipeline=2"));
    node.append(el("p", { class: "quiet" }, "In grey, below what was measured: what was predicted, and by how much that was off."), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, heads.map((h, i) => el("th", { class: i > 1 && "n" }, h)))), el("tbody", {}, runs.map(row)))));
    if (!runs.some(r => r.values["predicted.seconds"])) node.append(el("p", { class: "quiet" }, "Time and memory are predicted once this machine has measured a network: echelon plan recipes/demo.toml --workers 2"));
    const off = runs.filter(r => r.values["predicted.why_off"]);
    if (off.length) node.append(el("h2", {}, "Where predictions were off"), el("ul", {}, off.map(r => el("li", {}, `${r.name}: ${r.values["predicted.why_off"]}`))));
  }
  await draw();
  return { changed: draw };
}
