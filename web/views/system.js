// What a system is: workers, an arrow for everything that one has sent to another with the bytes that were counted, and
// the parts of the composition. Along the arrows travel the run's messages: one by one if it has a trace (replay.js), else
// a dot on each arrow, the faster the more was sent there.

import { get } from "../api.js";
import { choice, el } from "../dom.js";
import { bytes, number } from "../format.js";
import { replay } from "../replay.js";
import { listRuns, runFor } from "../store.js";

const width = 760, mostDrawn = 16, mostLabels = 12;

// From node to node, bent to the right so that there and back are two arrows. Ends at the edges of the boxes.
function arrow(a, b, bend) {
  const dx = b.x - a.x, dy = b.y - a.y, far = Math.hypot(dx, dy);
  const out = Math.min(48 / Math.max(1e-9, Math.abs(dx)), 25 / Math.max(1e-9, Math.abs(dy)));
  const side = { x: -dy / far * bend, y: dx / far * bend }, at = t => ({ x: a.x + dx * t + side.x * .35, y: a.y + dy * t + side.y * .35 });
  const from = at(out), to = at(1 - out), turn = { x: a.x + dx / 2 + side.x * 1.6, y: a.y + dy / 2 + side.y * 1.6 };
  const point = t => ({ x: (1 - t) ** 2 * from.x + 2 * t * (1 - t) * turn.x + t * t * to.x, y: (1 - t) ** 2 * from.y + 2 * t * (1 - t) * turn.y + t * t * to.y });
  return { d: `M${from.x} ${from.y} Q${turn.x} ${turn.y} ${to.x} ${to.y}`, label: point(.36) };  // nearer to its start, so that there and back do not meet
}

// The picture, and where a message from one worker to another is when it has travelled a share of its way.
function picture(workers, sent) {
  const n = Math.min(workers, mostDrawn), height = n < 3 ? 200 : n < 7 ? 380 : 520;
  const at = i => n === 1 ? { x: width / 2, y: height / 2 } : n === 2 ? { x: 150 + 460 * i, y: height / 2 }
    : { x: width / 2 + 290 * Math.sin(2 * Math.PI * i / n), y: height / 2 - (height / 2 - 40) * Math.cos(2 * Math.PI * i / n) };
  const wires = [];
  for (let from = 0; from < n; ++from) for (let to = 0; to < n; ++to) if (sent?.[from][to] > 0) wires.push({ from, to, bytes: sent[from][to], ...arrow(at(from), at(to), n === 2 ? 34 : 14) });
  const most = Math.max(1, ...wires.map(w => w.bytes));
  const paths = wires.map(w => el("path", { class: "wire", d: w.d, style: { "stroke-width": 1 + 3 * Math.sqrt(w.bytes / most) }, "marker-end": "url(#tip)" },
    el("title", {}, `worker ${w.from} to worker ${w.to}: ${bytes(w.bytes)}`)));
  const dots = el("g", {});
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, class: "picture", role: "img", "aria-label": `${workers} workers, ${wires.length} arrows` },
    el("defs", {}, el("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, el("path", { d: "M0 0 L8 4 L0 8 Z", style: { fill: "var(--other)" } }))),
    paths, dots,
    Array.from({ length: n }, (_, i) => el("g", {}, el("rect", { class: "node", x: at(i).x - 42, y: at(i).y - 20, width: 84, height: 40, rx: 8 }),
      el("text", { x: at(i).x, y: at(i).y + 5, "text-anchor": "middle" }, `worker ${i}`))),
    wires.length <= mostLabels && wires.map(w => {
      const label = bytes(w.bytes), wide = 7 * label.length + 6;
      return [el("rect", { x: w.label.x - wide / 2, y: w.label.y - 9, width: wide, height: 18, style: { fill: "var(--back)" } }),
              el("text", { class: "onwire", x: w.label.x, y: w.label.y + 4, "text-anchor": "middle" }, label)];
    }));
  const wireOf = new Map(wires.map((w, i) => [`${w.from} ${w.to}`, i])), lengths = [];
  const place = (from, to, share) => {
    const i = wireOf.get(`${from} ${to}`);
    if (i === undefined) return null;
    lengths[i] ??= paths[i].getTotalLength();
    return paths[i].getPointAtLength(lengths[i] * share);
  };
  return { svg, dots, wires, most, place };
}

// A dot on each arrow. `recent`: what was sent since the run was last heard of; where that is nothing, no dot.
function flow({ dots, wires, place }, recent) {
  const weight = w => recent ? recent[w.from][w.to] : w.bytes, moving = wires.filter(w => weight(w) > 0);
  const most = Math.max(1, ...moving.map(weight)), circles = moving.map(() => el("circle", { class: "dot", r: 4 }));
  dots.replaceChildren(...circles);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let frame = 0;
  function tick(time) {
    moving.forEach((w, i) => {
      const period = 1200 * Math.min(4, Math.sqrt(most / weight(w))), p = place(w.from, w.to, still ? .3 : time / period % 1);
      circles[i].setAttribute("cx", p.x); circles[i].setAttribute("cy", p.y);
    });
    if (!still) frame = requestAnimationFrame(tick);
  }
  frame = requestAnimationFrame(tick);
  return () => cancelAnimationFrame(frame);
}

// All of it in figures: a row for who sends, a column for who receives.
function table(sent) {
  const most = Math.max(1, ...sent.flat());
  return el("div", { class: "scroll" }, el("table", { class: "matrix" },
    el("thead", {}, el("tr", {}, el("th", {}, "from \\ to"), sent.map((_, r) => el("th", {}, r)))),
    el("tbody", {}, sent.map((row, i) => el("tr", {}, el("th", {}, i), row.map((v, j) =>
      el("td", { class: "n heat", style: { background: `color-mix(in srgb, var(--exchange) ${Math.round(40 * v / most)}%, transparent)` } }, i === j ? "·" : v ? bytes(v) : "-")))))));
}

// Of what was sent: in steps, and else.
function explanation(run, workers, sent, steps) {
  if (workers === 1) return "One worker alone has no other to exchange with.";
  if (!sent) return run.values.state === "running" ? "The run counts what each worker sends to each other one; it is written down at the first evaluation." : "Who has sent how much to whom is not known of this run: it was written before that was counted, did not come to an evaluation, or has more than 64 workers.";
  const all = sent.flat().reduce((a, b) => a + b, 0), inSteps = run.values.bytes;
  return `Counted by every worker for each other one ${run.values.state === "running" ? "up to the last evaluation" : "in the whole run"}, since it was started or resumed: ${bytes(all)}. ` +
    (inSteps > 0 ? `In its steps: ${bytes(inSteps)} in ${number(steps)} steps; the rest are evaluations, saves and agreements.` : inSteps === 0 ? "In their steps the workers share their memory and send nothing; these are evaluations, saves and agreements." : "");
}

export async function open(node, values) {
  const all = (await listRuns("")).runs, name = runFor(values, all);
  node.append(el("h1", {}, "System", name ? `: ${name}` : ""));
  if (!name) return {};
  node.append(el("div", { class: "bar" }, choice("run", all.map(r => r.name), name, v => { location.hash = `#/system?run=${encodeURIComponent(v)}`; })));
  const system = await get("/api/system", { run: name }), body = el("div");
  node.append(body);
  let stop = () => {}, before = null;

  async function draw() {
    const run = await get("/api/run", { name }), sent = run.cluster?.sent;
    const moved = before && sent && sent.some((row, i) => row.some((v, j) => v > before[i][j]));
    const drawn = picture(system.workers, sent), messages = run.has_trace && drawn.wires.length ? await get("/api/trace/messages", { run: name }) : null;
    stop();
    const replayed = messages?.all ? replay(name, messages, drawn) : null;
    stop = replayed?.stop ?? flow(drawn, moved ? sent.map((row, i) => row.map((v, j) => v - before[i][j])) : null);
    before = sent ?? null;
    body.replaceChildren(el("p", {}, system.title ? `${system.name}: ${system.title}` : "bsp: the exact sum of all gradients in every step", " ", el("span", { class: "quiet" }, system.paper ?? "")), drawn.svg,
      replayed?.controls ?? "",
      el("p", { class: "quiet" }, explanation(run, system.workers, sent, run.values.steps ?? run.values.last_step ?? 0),
        system.workers > mostDrawn && ` The picture has the first ${mostDrawn} of ${system.workers} workers.`,
        !run.has_trace && drawn.wires.length > 0 && " With train --trace every message of the run is shown here."));
    if (sent?.length > 2) body.append(el("h2", {}, "Bytes from worker to worker"), table(sent));
    if (system.composition) body.append(el("h2", {}, "Its parts"), el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["axis", "part", "what it does", "settings"].map(h => el("th", {}, h)))),
      el("tbody", {}, Object.entries(system.composition).map(([axis, part]) => el("tr", {}, el("td", {}, axis), el("td", {}, part.name), el("td", { class: "wrap" }, part.about),
        el("td", { class: "wrap" }, (part.settings ?? []).map(s => `${s.key} = ${s.value}`).join(", "))))))),
      el("h2", {}, "Every worker"), el("pre", {}, system.worker), ...(system.server ? [el("h2", {}, "Server"), el("pre", {}, system.server)] : []),
      el("h2", {}, "Bytes by the formula"), el("p", {}, system.traffic.formula));
  }
  await draw();
  let shown = JSON.stringify(before);
  return {
    async changed(names) {  // news of steps alone changes nothing here
      if (!names.includes(name)) return;
      const run = await get("/api/run", { name }), now = JSON.stringify(run.cluster?.sent ?? null);
      if (now === shown && !run.has_trace) return;
      shown = now;
      await draw();
    },
    leave() { stop(); } };
}
