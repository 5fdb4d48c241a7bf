// One run: result, recipe (with the difference to another), curves, confusion matrix and mistakes, samples, histograms of weights,
// gradients and changes, checkpoints, journal, log; and what can be asked of it while it goes on.

import { get, mayAct, picture, post } from "../api.js";
import { choice, el, fill, toast } from "../dom.js";
import { duration, number, percent, when } from "../format.js";
import { drawBitmap, drawHistogram, drawPixels } from "../pictures.js";
import { plot, smoothed } from "../plot.js";
import { isSetting, listRuns, lowerIsBetter, runFor } from "../store.js";

const shownFirst = ["state", "model", "started", "steps", "epochs", "train_loss", "train_accuracy"];
const shownLast = ["tested_step", "best", "seconds", "samples_per_s", "world", "workers", "parent", "data_fingerprint", "weights_sha256"];
const formats = { started: when, seconds: duration };
const ofPart = /^(train|val|test)_(.+)$/;

// What the run says of itself, with every metric that its recipe asked for.
const resultKeys = values => [...shownFirst, ...["val_", "test_"].flatMap(part => Object.keys(values).filter(k => k.startsWith(part) && !shownLast.includes(k)).sort()), ...shownLast]
  .filter(k => values[k] !== undefined);

// The metrics of a run without the part that they were measured on: the loss first, then what decides about the best step.
function measured(metrics, monitor) {
  const names = [...new Set(metrics.map(m => ofPart.exec(m)?.[2]).filter(Boolean))].filter(m => m !== "step");
  const rank = m => m === "loss" ? 0 : monitor?.endsWith("_" + m) ? 1 : m === "accuracy" ? 2 : 3;
  return names.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}


const mostTexts = 5;
const mostPlots = 7;  // the curves view has them all

function actions(run) {
  const act = async (action, extra = {}) => { try { await post("/api/control", { run, action, ...extra }); toast(`asked to ${action}`); } catch (p) { toast(p.message); } };
  const factor = el("input", { type: "number", step: "any", min: 0, value: 0.5, size: 5, "aria-label": "Factor of the rate" });
  return el("div", { class: "bar", id: "actions" }, ["pause", "resume", "checkpoint", "stop"].map(a =>
    el("button", { onclick: () => { if (a !== "stop" || confirm(`Stop ${run}? It saves first and can go on later.`)) act(a); } }, a[0].toUpperCase() + a.slice(1))),
    el("label", {}, "rate ×", factor), el("button", { onclick: () => act("rate", { value: Number(factor.value) }) }, "Change the rate"));
}

function confusion(evaluation) {
  const most = Math.max(1, ...evaluation.confusion.map(r => Math.max(...r)));
  return el("div", { class: "scroll" }, el("table", { class: "matrix" },
    el("thead", {}, el("tr", {}, el("th", {}, "is \\ said"), evaluation.classes.map(c => el("th", {}, c)), el("th", {}, "right"))),
    el("tbody", {}, evaluation.confusion.map((row, i) => {
      const sum = row.reduce((a, b) => a + b, 0);
      return el("tr", {}, el("th", {}, evaluation.classes[i]), row.map((n, j) => el("td", { class: "heat", style: {
        background: n ? `color-mix(in srgb, var(${i === j ? "--good" : "--bad"}) ${Math.round(12 + 60 * (i === j ? n / most : Math.min(1, 4 * n / Math.max(1, sum))))}%, transparent)` : "none" } }, n || "")),
        el("td", {}, sum ? percent(row[i] / sum) : ""));
    }))));
}

function histograms(lines) {
  const steps = [...new Map(lines.map(l => [l.step, l])).values()].sort((a, b) => a.step - b.step);
  const holder = el("div", { class: "cards" });
  const slider = el("input", { type: "range", min: 0, max: steps.length - 1, value: steps.length - 1, "aria-label": "Step of the histograms", oninput: draw });
  const at = el("span", { class: "quiet" });
  function draw() {
    const line = steps[Number(slider.value)];
    at.textContent = `step ${number(line.step)}`;
    holder.replaceChildren(...line.tensors.map(t => el("figure", { class: "card" }, el("h3", {}, t.name),
      drawHistogram(t.weights, "weights", "--s0"), t.gradient ? drawHistogram(t.gradient, "gradient of the last step", "--s2") : null, t.change ? drawHistogram(t.change, "change since the evaluation before", "--s1") : null)));
  }
  draw();
  return [el("div", { class: "bar" }, slider, at), holder];
}

export async function open(node, values) {
  const all = (await listRuns("")).runs, name = runFor(values, all);
  if (!name) { node.append(el("h1", {}, "Run"), el("p", { class: "quiet" }, "No runs yet.")); return {}; }
  let run = await get("/api/run", { name });
  const drawn = [];
  const head = el("div"), body = el("div");
  let drawing = false;
  let buttons = null;  // stay as they are while the run is live: what people click on must not be drawn anew
  node.append(head, body);
  const section = (title, ...content) => body.append(el("h2", {}, title), ...content);

  // What `echelon sample --keep` has made with the run: a sheet of pictures, or texts, the newest first.
  async function samples() {
    const sheet = run.has_pictures ? [drawBitmap(await picture("/api/pictures", { run: name }), "Pictures that the network has made")] : [];
    return [...sheet, ...run.texts.slice(-mostTexts).reverse().map(t => el("figure", { class: "card" },
      el("figcaption", { class: "quiet" }, `step ${number(t.step)}, temperature ${number(t.temperature)}, ${when(t.time)}`), el("pre", { class: "text" }, el("strong", {}, t.prompt), t.text)))];
  }

  async function draw() {
    drawn.splice(0).forEach(d => d.destroy());
    fill(head, el("h1", {}, run.star ? "★ " : "", name, " ", run.tags.map(t => el("span", { class: "tag" }, t))), run.note && el("p", {}, run.note));
    const live = run.values.state === "running" && mayAct();
    if (live && !buttons) head.after(buttons = actions(name));
    if (!live && buttons) buttons = buttons.remove() ?? null;
    fill(body);
    const facts = el("dl", { class: "facts" }, resultKeys(run.values).map(k =>
      [el("dt", {}, k), el("dd", {}, k === "best" ? `${run.values.best_metric} ${number(run.values.best)} at step ${number(run.values.best_step)}` : (formats[k] ?? (v => number(v, 6)))(run.values[k]))]));
    const metrics = await get("/api/metrics", { run: name }), shown = measured(metrics, run.values.best_metric).slice(0, mostPlots);
    const cards = shown.map(m => el("section", { class: "card", "data-metric": m }));
    body.append(el("div", { class: "plots" }, el("section", { class: "card", style: { "grid-row": `span ${Math.max(1, Math.min(2, shown.length))}` } }, el("h3", {}, "Result"), facts), cards));
    body.append(el("p", {}, el("a", { href: `#/curves?run=${encodeURIComponent(name)}` }, "All curves, over samples, time and bytes too")));
    await Promise.all(shown.map(async (metric, i) => {
      const names = ["train_", "val_", "test_"].map(part => part + metric).filter(m => metrics.includes(m));
      const curves = await Promise.all(names.map(async m => ({ ...(await get("/api/curves", { run: name, metric: m, points: 1000 })).curves[0], name: m })));
      drawn.push(plot(cards[i], { title: metric, x: "step", log: metric === "loss", curves: curves.map(c => ({ ...c, y: smoothed(c.y, c.name.startsWith("train") ? 8 : 1) })) }));
    }));

    if (run.evaluation) {
      section("Confusion matrix", confusion(run.evaluation));
      const pictures = run.evaluation.mistakes.filter(m => m.pixels);
      if (run.evaluation.mistakes.length) section("Its most confident mistakes", el("div", { class: "mistakes" }, (pictures.length ? pictures : run.evaluation.mistakes).map(m =>
        el("figure", {}, m.pixels && drawPixels(m), el("figcaption", {}, `${m.is} read as ${m.said}`, el("br"), percent(m.confidence))))));
    }
    if (run.has_pictures || run.texts.length) section("Samples", ...await samples());
    if (run.histograms.length) section(run.histograms.some(l => l.tensors.some(t => t.gradient)) ? "Weights and gradients" : "Weights", ...histograms(run.histograms));
    section("Checkpoints", run.checkpoints.length || run.archived.length ? el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["step", run.values.best_metric ?? "score", "weights", ""].map((h, i) => el("th", { class: i < 2 && "n" }, h)))),
      el("tbody", {}, run.checkpoints.map(c => el("tr", {}, el("td", { class: "n" }, number(c.step)), el("td", { class: "n" }, number(c.score !== null && lowerIsBetter(run.values.best_metric) ? -c.score : c.score)), el("td", {}, c.weights_sha256.slice(0, 16)), el("td", {}, ""))),
        run.archived.map(step => el("tr", {}, el("td", { class: "n" }, number(step)), el("td"), el("td"), el("td", { class: "quiet" }, "in the archive"))))))
      : el("p", { class: "quiet" }, "None."));
    if (run.journal.length) section("Asked by hand", el("div", { class: "scroll" }, el("table", {},
      el("tbody", {}, run.journal.map(j => el("tr", {}, el("td", {}, when(j.time)), el("td", { class: "n" }, `step ${j.step}`), el("td", {}, j.action), el("td", { class: "n" }, j.action === "rate" ? `× ${number(j.value)}` : "")))))));
    const recipe = el("div"), other = choice("difference to", ["", ...all.map(r => r.name).filter(n => n !== name)], "", async v => {
      if (!v) return recipe.replaceChildren(el("pre", {}, run.recipe));
      const them = all.find(r => r.name === v);
      const keys = [...new Set([...Object.keys(run.values), ...Object.keys(them.values)])].filter(k => isSetting(k) && run.values[k] !== them.values[k]).sort();
      recipe.replaceChildren(keys.length ? el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["setting", name, v].map(h => el("th", {}, h)))),
        el("tbody", {}, keys.map(k => el("tr", {}, el("td", {}, k), el("td", {}, number(run.values[k]) || "-"), el("td", {}, number(them.values[k]) || "-"))))))
        : el("p", { class: "quiet" }, "The recipes do not differ."));
    });
    recipe.append(el("pre", {}, run.recipe));
    section("Recipe", el("div", { class: "bar" }, other), recipe);
    section("Log of rank 0", el("pre", { tabindex: 0 }, run.log || "-"));
  }
  await draw();
  // Whoever is typing is not disturbed, and the page stays where it was.
  const typing = () => node.contains(document.activeElement) && /^(INPUT|SELECT)$/.test(document.activeElement.tagName);
  return { async changed(names) {
             if (!names.includes(name) || typing() || drawing) return;
             drawing = true;  // one at a time, however fast the news comes
             try {
               run = await get("/api/run", { name });
               const at = scrollY;
               await draw();
               scrollTo(0, at);
             } finally { drawing = false; }
           },
           leave() { drawn.forEach(d => d.destroy()); } };
}
