// What several views share: the list of runs, and which of them somebody has chosen.

import { get } from "./api.js";

export const value = (run, key) => key === "name" ? run.name : key === "tags" ? run.tags.join(", ") : key === "note" ? run.note : run.values[key];

export const listRuns = question => get("/api/runs", { q: question });

const chosen = new Set(JSON.parse(sessionStorage.getItem("chosen") ?? "[]"));
const keep = () => sessionStorage.setItem("chosen", JSON.stringify([...chosen]));
export const choose = (name, on) => { if (on) chosen.add(name); else chosen.delete(name); keep(); };
export const isChosen = name => chosen.has(name);

// The runs a view is about: those in its address, else those chosen, else the newest few.
export function runsFor(values, all, most = 6) {
  const known = new Set(all.map(r => r.name));
  const named = values.getAll("run").filter(n => known.has(n));
  if (named.length) return named;
  const picked = [...chosen].filter(n => known.has(n));
  if (picked.length) return picked;
  return all.slice(-most).map(r => r.name);
}

// The one run a view is about: the newest if nobody says which.
export const runFor = (values, all) => values.get("run") ?? runsFor(values, all, 1).at(-1);

// Whether a value is a setting of the recipe: those are in tables. What was measured or predicted of a run is not.
export const isSetting = key => key.includes(".") && !/^(system|predicted|measured)\./.test(key);

// Of metrics, wherever they were measured: val_loss, test_mae[price]. A checkpoint's score has the other sign then.
export const lowerIsBetter = metric => /(loss|mae|rmse|perplexity)(\[.*\])?$/.test(metric ?? "");

// Settings in which these runs differ, apart from paths and hashes.
export function differing(runs) {
  const keys = new Set(runs.flatMap(r => Object.keys(r.values)));
  return [...keys].filter(k => isSetting(k) && !k.startsWith("data.path") && new Set(runs.map(r => JSON.stringify(r.values[k] ?? null))).size > 1).sort();
}
