// The table of all runs: filter with the question language, sort by any column, group by any setting, star, tags,
// notes, trash.

import { mayAct, post } from "../api.js";
import { check, choice, el, fill, toast } from "../dom.js";
import { duration, number, when } from "../format.js";
import { choose, isChosen, listRuns, value } from "../store.js";

const usual = ["started", "model", "state", "steps", "best", "seconds", "samples_per_s"];
const formats = { started: when, seconds: duration };
const names = { samples_per_s: "samples/s", best: "best" };

export async function open(node) {
  const kept = JSON.parse(sessionStorage.getItem("runs view") ?? "{}");
  const state = { question: kept.question ?? "", sort: kept.sort ?? "started", down: kept.down ?? true, group: kept.group ?? "",
                  columns: kept.columns ?? usual, stars: false };
  let data = await listRuns(state.question).catch(() => listRuns(state.question = ""));
  let numeric = new Set();
  const holder = el("div"), problem = el("p", { class: "bad", role: "status" });

  const search = el("input", { type: "search", value: state.question, "aria-label": "Filter",
    placeholder: "test_accuracy > 0.98 and optim.lr < 0.1 order by seconds", onkeydown: e => { if (e.key === "Enter") ask(); }, onsearch: () => ask() });
  async function ask() {
    state.question = search.value;
    try {
      data = await listRuns(state.question);
      problem.textContent = "";
      if (/order\s+by/i.test(state.question)) state.sort = "";
      draw();
    } catch (p) { problem.textContent = p.message; }
  }

  const act = async (path, body) => {
    try { await post(path, body); data = await listRuns(state.question); draw(); } catch (p) { toast(p.message); }
  };
  const column = el("input", { list: "keys", placeholder: "add a column", "aria-label": "Add a column",
    onchange: () => { if (column.value && !state.columns.includes(column.value)) state.columns.push(column.value); column.value = ""; draw(); } });

  function sorted(runs) {
    if (!state.sort) return runs;
    const missing = v => v === undefined || v === "";
    return [...runs].sort((a, b) => {
      const x = value(a, state.sort), y = value(b, state.sort);
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
      return state.down ? -order : order;
    });
  }

  function row(run) {
    const may = mayAct();
    return el("tr", {},
      el("td", {}, el("input", { type: "checkbox", checked: isChosen(run.name), "aria-label": `Choose ${run.name}`,
        onchange: e => { choose(run.name, e.target.checked); count(); } })),
      el("td", {}, el("button", { class: "plain star", "aria-pressed": String(run.star), "aria-label": `Star ${run.name}`, disabled: !may,
        onclick: () => act("/api/label", { run: run.name, star: !run.star }) }, run.star ? "★" : "☆")),
      el("td", {}, el("a", { href: `#/run?run=${encodeURIComponent(run.name)}` }, run.name)),
      state.columns.map(c => {
        const v = c === "best" && run.values.best !== undefined ? `${run.values.best_metric} ${number(run.values.best)}` : value(run, c);
        return el("td", { class: numeric.has(c) ? "n" : c === "state" && v === "crashed" ? "bad" : c === "state" && v === "running" ? "good" : "" },
          formats[c] && typeof v === "number" ? formats[c](v) : number(v));
      }),
      el("td", {}, run.tags.map(t => el("span", { class: "tag" }, t)), may && el("button", { class: "plain", "aria-label": `Tag ${run.name}`,
        onclick: () => { const t = prompt(`Tags of ${run.name}, separated by commas`, run.tags.join(", ")); if (t !== null) {
          const wanted = t.split(",").map(s => s.trim()).filter(Boolean);
          act("/api/label", { run: run.name, add: wanted, remove: run.tags.filter(o => !wanted.includes(o)) }); } } }, "+")),
      el("td", { class: "wrap" }, run.note, may && el("button", { class: "plain", "aria-label": `Note for ${run.name}`,
        onclick: () => { const t = prompt(`A note for ${run.name}`, run.note); if (t !== null) act("/api/label", { run: run.name, note: t }); } }, "✎")),
      el("td", {}, may && el("button", { class: "plain", "aria-label": `Move ${run.name} to the trash`, title: "to the trash",
        onclick: () => { if (confirm(`Move ${run.name} to runs/.trash?`)) act("/api/trash", { run: run.name }); } }, "×")));
  }

  const chosenCount = el("span", { class: "quiet" });
  function count() { const n = data.runs.filter(r => isChosen(r.name)).length; chosenCount.textContent = n ? `${n} chosen` : ""; }

  function draw() {
    sessionStorage.setItem("runs view", JSON.stringify({ question: state.question, sort: state.sort, down: state.down, group: state.group, columns: state.columns }));
    const runs = sorted(data.runs.filter(r => !state.stars || r.star));
    numeric = new Set(state.columns.filter(c => c !== "started" && runs.some(r => typeof value(r, c) === "number") && c !== "best"));
    const head = c => el("th", { class: numeric.has(c) && "n", "aria-sort": state.sort === c ? (state.down ? "descending" : "ascending") : "none" },
      el("button", { onclick: () => { state.down = state.sort === c ? !state.down : true; state.sort = c; draw(); } },
        names[c] ?? c, state.sort === c ? (state.down ? " ↓" : " ↑") : ""),
      !usual.includes(c) && c !== "name" && el("button", { "aria-label": `Remove column ${c}`, onclick: () => { state.columns = state.columns.filter(o => o !== c); draw(); } }, " ×"));
    const body = el("tbody");
    if (state.group) {
      const groups = new Map();
      for (const r of runs) { const g = String(value(r, state.group) ?? "-"); groups.set(g, [...(groups.get(g) ?? []), r]); }
      for (const [g, members] of groups)
        body.append(el("tr", { class: "group" }, el("td", { colspan: state.columns.length + 6 }, `${state.group} = ${g} `, el("span", { class: "quiet" }, `${members.length}`))), ...members.map(row));
    } else body.append(...runs.map(row));
    holder.replaceChildren(runs.length ? el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th"), el("th"), head("name"), state.columns.map(head), el("th", {}, "tags"), el("th", {}, "note"), el("th"))), body))
      : el("p", { class: "quiet" }, data.runs.length || state.question ? "No run fits." : "No runs yet. Try: echelon train recipes/demo.toml"));
    count();
  }

  fill(node, el("h1", {}, "Runs"),
    el("div", { class: "bar" }, search, el("button", { onclick: ask }, "Find"),
      choice("group by", ["", ...data.keys], state.group, v => { state.group = v; draw(); }),
      column, el("datalist", { id: "keys" }, data.keys.map(k => el("option", { value: k }))),
      check("starred", state.stars, v => { state.stars = v; draw(); }),
      el("a", { href: "#/curves" }, "curves"), el("a", { href: "#/compare" }, "compare"), chosenCount),
    problem, holder,
    !mayAct() && el("p", { class: "quiet" }, "To star, tag, note or throw away: open the address that `echelon board` printed, with its token."));
  draw();
  return { async changed() {
             try { data = await listRuns(state.question); } catch { return; }  // a wrong question was answered when it was asked
             draw();
           } };
}
