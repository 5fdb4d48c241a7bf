// The page: finds the view that the address names (#/curves?run=a&run=b), shows it, and tells it what has changed.

import { watch } from "./api.js";
import { el, toast } from "./dom.js";
import * as runs from "./views/runs.js";
import * as curves from "./views/curves.js";
import * as run from "./views/run.js";
import * as compare from "./views/compare.js";
import * as workers from "./views/workers.js";
import * as cluster from "./views/cluster.js";
import * as system from "./views/system.js";
import * as graph from "./views/graph.js";
import * as plans from "./views/plans.js";

const views = { runs, curves, compare, run, workers, cluster, system, graph, plans };
const titles = { runs: "Runs", curves: "Curves", compare: "Compare", run: "Run", workers: "Workers", cluster: "Cluster",
                 system: "System", graph: "Graph", plans: "Plans" };
const main = document.getElementById("main");
let shown = null, generation = 0;

// Where we are: the view's name, and the names of the runs it is about.
export function place() {
  const [, name = "runs", query = ""] = /^#\/(\w+)(?:\?(.*))?$/.exec(location.hash) ?? [];
  return { name: views[name] ? name : "runs", values: new URLSearchParams(query) };
}

function navigate(here) {
  const query = here.values.getAll("run").map(r => "run=" + encodeURIComponent(r)).join("&");
  document.getElementById("nav").replaceChildren(...Object.keys(views).map(name =>
    el("a", { href: `#/${name}${query && name !== "runs" ? "?" + query : ""}`, "aria-current": name === here.name && "page" }, titles[name])));
}

async function show() {
  const here = place(), mine = ++generation;
  shown?.leave?.();
  shown = null;
  navigate(here);
  document.title = titles[here.name] + " · Echelon";
  const node = el("div", { class: "view", id: "view-" + here.name });
  main.replaceChildren(node);
  main.setAttribute("aria-busy", "true");
  try {
    const view = await views[here.name].open(node, here.values);
    if (mine === generation) shown = view; else view?.leave?.();
  } catch (problem) {
    if (mine === generation) node.replaceChildren(el("h1", {}, titles[here.name]), el("p", { class: "bad" }, problem.message));
  }
  if (mine === generation) main.removeAttribute("aria-busy");
}

addEventListener("hashchange", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
addEventListener("unhandledrejection", event => { toast(event.reason?.message ?? "something went wrong"); });
show();
watch(names => shown?.changed?.(names),
      state => { document.getElementById("live").textContent = state === "live" ? "live" : "the server does not answer"; });
