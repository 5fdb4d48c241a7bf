// Where a run's workers are, who of them is alive and what it does or why it failed, and what the links
// between them cost, as the run measured it.

import { get } from "../api.js";
import { choice, el } from "../dom.js";
import { bytes, duration, number } from "../format.js";
import { listRuns, runFor } from "../store.js";

// A square: above the diagonal the speed between two ranks, below it how long a small message takes. The slower, the
// stronger the colour.
function pairs(cluster) {
  const n = cluster.ranks.length, of = new Map(cluster.pairs.map(p => [`${p.from} ${p.to}`, p]));
  const slowest = Math.min(...cluster.pairs.map(p => p.bytes_per_s)), longest = Math.max(...cluster.pairs.map(p => p.latency_s));
  const cell = (i, j) => {
    if (i === j) return el("td", { class: "quiet" }, "·");
    const p = of.get(`${Math.min(i, j)} ${Math.max(i, j)}`);
    const share = i < j ? slowest / p.bytes_per_s : p.latency_s / longest;
    return el("td", { class: "n heat", title: `rank ${i} and rank ${j}: ${duration(p.latency_s)}, ${bytes(p.bytes_per_s)}/s`,
      style: { background: `color-mix(in srgb, var(--other) ${Math.round(30 * share)}%, transparent)` } }, i < j ? `${bytes(p.bytes_per_s)}/s` : duration(p.latency_s));
  };
  const ranks = [...Array(n).keys()];
  return el("div", { class: "scroll" }, el("table", { class: "matrix" }, el("caption", { class: "quiet" }, "Above the diagonal: speed. Below: the time of a small message."),
    el("thead", {}, el("tr", {}, el("th", {}, "rank"), ranks.map(r => el("th", {}, r)))),
    el("tbody", {}, ranks.map(i => el("tr", {}, el("th", {}, i), ranks.map(j => cell(i, j)))))));
}

// What is known of a rank: its colour, and words.
function stateOf(rank, run, live) {
  const { failed, ranks, told } = run.cluster;
  if (failed?.rank === rank) return { fill: "var(--bad)", text: `lost: ${failed.reason}` };
  if (failed) return { fill: "var(--other)", text: `ended, because rank ${failed.rank} was lost` };
  if (live) return { fill: "var(--good)", text: ranks[rank].status ? `alive: ${ranks[rank].status} (at ${new Date(told * 1000).toLocaleTimeString()})` : "alive" };
  return run.values.state === "crashed" ? { fill: "var(--bad)", text: "gone, without a word of why" } : { fill: "var(--other)", text: "has ended" };
}

function draw(node, name, run) {
  const live = run.values.state === "running";
  if (!run.cluster) {
    return node.replaceChildren(el("p", { class: "quiet" }, "One worker alone, or a run from before this was written down."));
  }
  const hosts = new Map();
  run.cluster.ranks.forEach((r, i) => hosts.set(r.host, [...(hosts.get(r.host) ?? []), { ...r, rank: i }]));
  const links = run.cluster.links;
  const height = 60 + Math.max(...[...hosts.values()].map(h => h.length)) * 30, width = Math.max(320, hosts.size * 260);
  node.replaceChildren(el("p", {}, `${run.cluster.ranks.length} workers on ${hosts.size} host${hosts.size > 1 ? "s" : ""}, world ${run.cluster.world}, `,
      el("span", { class: live ? "good" : "quiet" }, live ? "the run goes on" : `the run is over (${run.values.state})`)),
    el("div", { class: "scroll" }, el("svg", { viewBox: `0 0 ${width} ${height + (hosts.size > 1 ? 42 : 16)}`, width, height: height + (hosts.size > 1 ? 42 : 16), role: "img", "aria-label": "Hosts and workers" },
      [...hosts].map(([host, ranks], h) => el("g", {},
        el("rect", { class: "node", x: 20 + h * 260, y: 12, width: 236, height: height - 10, rx: 8 }),
        el("text", { x: 34 + h * 260, y: 34 }, host),
        ranks.map((r, i) => el("g", {}, el("circle", { cx: 42 + h * 260, cy: 58 + i * 30, r: 7, fill: stateOf(r.rank, run, live).fill }, el("title", {}, stateOf(r.rank, run, live).text)),
          el("text", { x: 58 + h * 260, y: 62 + i * 30 }, `rank ${r.rank}`), el("text", { class: "quiet", x: 110 + h * 260, y: 62 + i * 30 }, `${r.cores} core${r.cores > 1 ? "s" : ""}${r.process ? `, process ${r.process}` : ""}`))))),
      hosts.size > 1 && [...hosts].map((_, h) => el("path", { class: "wire", d: `M${138 + h * 260} ${height + 2} v16 ${h > 0 ? "h-260" : ""}` })),
      hosts.size > 1 && links && el("text", { class: "quiet", x: 146, y: height + 34 }, `${bytes(links.bytes_per_s)}/s, ${duration(links.latency_s)}`))),
    el("h2", {}, "Who is alive"), el("div", { class: "scroll" }, el("table", { id: "alive" }, el("tbody", {}, run.cluster.ranks.map((r, i) => el("tr", {}, el("td", {}, `rank ${i}`), el("td", {}, r.host), el("td", { class: "wrap" }, stateOf(i, run, live).text)))))));
  const changes = (run.journal ?? []).filter(j => j.action === "generation");
  if (changes.length) node.append(el("h2", {}, "Changes of the workers"), el("ul", {}, changes.map(c => el("li", {}, `after step ${number(c.step)}: ${c.because} (from then on ${c.workers} workers)`))));
  if (links) node.append(el("h2", {}, "Links, as measured"), el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", {}, "between"), el("th", { class: "n" }, "a small message takes"), el("th", { class: "n" }, "speed"))),
    el("tbody", {}, links.hosts > 1 && el("tr", {}, el("td", {}, "hosts"), el("td", { class: "n" }, duration(links.latency_s)), el("td", { class: "n" }, bytes(links.bytes_per_s) + "/s")),
      el("tr", {}, el("td", {}, "workers of one host"), el("td", { class: "n" }, duration(links.host_latency_s)), el("td", { class: "n" }, bytes(links.host_bytes_per_s) + "/s"))))));
  else node.append(el("p", { class: "quiet" }, run.cluster.world === "sim" ? "A simulated cluster: its file says what its links cost (recipes/clusters)." : "The links are measured at the end of a run that ends as it should."));
  if (run.cluster.pairs?.length) node.append(el("h2", {}, "Every pair"), pairs(run.cluster));
  node.append(el("p", { class: "quiet" }, run.values.bytes ? `All workers have sent ${bytes(run.values.bytes)} in ${number(run.values.steps)} steps.` : ""));
}

export async function open(node, values) {
  const all = (await listRuns("")).runs, name = runFor(values, all);
  node.append(el("h1", {}, "Cluster", name ? `: ${name}` : ""));
  if (!name) return {};
  node.append(el("div", { class: "bar" }, choice("run", all.map(r => r.name), name, v => { location.hash = `#/cluster?run=${encodeURIComponent(v)}`; })));
  const body = el("div");
  node.append(body);
  draw(body, name, await get("/api/run", { name }));
  return { async changed(names) { if (names.includes(name)) draw(body, name, await get("/api/run", { name })); } };
}
