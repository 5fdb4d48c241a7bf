// What a system is: workers, the servers or peers they exchange with, the parts it is made of, and the bytes on each
// arrow. Dots travel as often as the run's messages did, slowed down so that they can be seen.

import { get } from "../api.js";
import { choice, el } from "../dom.js";
import { bytes, number } from "../format.js";
import { listRuns, runFor } from "../store.js";

const width = 760;

function picture(system, workers, perStep, messages) {
  const n = Math.min(workers, 8), server = system.composition?.exchange?.name === "server";
  const height = server ? 260 : 200;
  const at = i => ({ x: n === 1 ? width / 2 : 70 + i * (width - 140) / (n - 1), y: height - 52 });
  const wires = [];
  if (server) for (let i = 0; i < n; ++i) wires.push([at(i), { x: width / 2, y: 62 }]);
  else for (let i = 0; i + 1 < n; ++i) wires.push([at(i), at(i + 1)]);
  const curve = ([a, b]) => server ? `M${a.x} ${a.y - 20} L${b.x} ${b.y}` : `M${a.x + 10} ${a.y - 18} Q${(a.x + b.x) / 2} ${a.y - 70} ${b.x - 10} ${b.y - 18}`;
  if (!server && n > 2) wires.push([at(n - 1), at(0)]);
  const each = wires.length ? perStep / wires.length : 0;
  const paths = wires.map((w, i) => el("path", { class: "wire", id: `wire-${i}`, d: !server && n > 2 && i === n - 1 ? `M${w[0].x} ${w[0].y - 20} C${w[0].x} 20 ${w[1].x} 20 ${w[1].x} ${w[1].y - 20}` : curve(w) }));
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, class: "picture", role: "img",
      "aria-label": `${workers} workers, ${system.composition?.exchange?.name ?? "exact sum"}, ${bytes(perStep)} a step` },
    paths,
    server && el("g", {}, el("rect", { class: "node", x: width / 2 - 80, y: 22, width: 160, height: 40, rx: 8 }), el("text", { x: width / 2, y: 46, "text-anchor": "middle" }, "servers (rule, sync)")),
    Array.from({ length: n }, (_, i) => el("g", {}, el("rect", { class: "node", x: at(i).x - 42, y: at(i).y - 20, width: 84, height: 40, rx: 8 }),
      el("text", { x: at(i).x, y: at(i).y + 5, "text-anchor": "middle" }, n < workers && i === n - 1 ? `worker ${workers - 1}` : `worker ${i}`))),
    perStep > 0 && el("text", { class: "quiet", x: width / 2, y: height - 8, "text-anchor": "middle" }, `${bytes(perStep)} a step in all, about ${bytes(each)} on each arrow`));
  const dots = perStep > 0 ? paths.map(() => el("circle", { class: "dot", r: 4 })) : [];
  svg.append(...dots);
  let frame = 0;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches, period = Math.min(4000, Math.max(900, 6000 / Math.max(1, messages / Math.max(1, wires.length))));
  function tick(time) {
    dots.forEach((d, i) => {
      const length = paths[i].getTotalLength(), phase = still ? .5 : (time / period + i / dots.length) % 1, there = server && phase > .5 ? 2 - 2 * phase : server ? 2 * phase : phase;
      const p = paths[i].getPointAtLength(length * there);
      d.setAttribute("cx", p.x); d.setAttribute("cy", p.y);
    });
    if (!still) frame = requestAnimationFrame(tick);
  }
  tick(0);
  return [svg, () => cancelAnimationFrame(frame)];
}

export async function open(node, values) {
  const all = (await listRuns("")).runs, name = runFor(values, all);
  node.append(el("h1", {}, "System", name ? `: ${name}` : ""));
  if (!name) return {};
  node.append(el("div", { class: "bar" }, choice("run", all.map(r => r.name), name, v => { location.hash = `#/system?run=${encodeURIComponent(v)}`; })));
  const [system, run] = await Promise.all([get("/api/system", { run: name }), get("/api/run", { name })]);
  const steps = run.values.steps ?? run.values.last_step ?? 0, measured = run.values.bytes > 0 && steps ? run.values.bytes / steps : 0;
  const [svg, stop] = picture(system, system.workers, measured, system.traffic?.messages_per_step ?? system.workers);
  node.append(el("p", {}, system.title ? `${system.name}: ${system.title}` : "bsp: the exact sum of all gradients in every step", " ", el("span", { class: "quiet" }, system.paper ?? "")), svg);
  if (system.workers > 1) node.append(el("p", { class: "quiet" }, measured ? `The bytes are those that this run has counted: ${bytes(run.values.bytes)} in ${number(steps)} steps.` : "The workers of this run share their memory: no messages are sent."));
  else node.append(el("p", { class: "quiet" }, "One worker alone has no other to exchange with."));
  if (system.composition) node.append(el("h2", {}, "Its parts"), el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["axis", "part", "what it does", "settings"].map(h => el("th", {}, h)))),
    el("tbody", {}, Object.entries(system.composition).map(([axis, part]) => el("tr", {}, el("td", {}, axis), el("td", {}, part.name), el("td", { class: "wrap" }, part.about),
      el("td", { class: "wrap" }, (part.settings ?? []).map(s => `${s.key} = ${s.value}`).join(", "))))))),
    el("h2", {}, "Every worker"), el("pre", {}, system.worker), ...(system.server ? [el("h2", {}, "Server"), el("pre", {}, system.server)] : []),
    el("h2", {}, "Bytes by the formula"), el("p", {}, system.traffic.formula));
  return { leave: stop };
}
