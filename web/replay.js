// The messages of a run, one by one, as its trace has them: each is a dot that travels along its arrow, the larger the longer
// the message. Time runs slower than in the run; where nothing is sent for a while, it jumps.

import { get } from "./api.js";
import { choice, el } from "./dom.js";
import { bytes, duration, number } from "./format.js";

const travel = .8, pause = 1.2;  // seconds of the page: how long a message is under way, how long nothing may move
const perSecond = 8;             // messages that a second of the page shows at first, about

// 1, 2, 5, 10, 20, ...: the next that is not smaller.
const rounded = factor => { const ten = 10 ** Math.floor(Math.log10(factor)); return ten * [1, 2, 5, 10].find(m => m * ten >= factor * .999); };

// answer: the first of the messages, as /api/trace/messages gives them. drawn: {dots, place} of the picture.
export function replay(run, answer, { dots, place }) {
  const { first, last } = answer;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const usual = rounded(Math.max(1, answer.all / perSecond / Math.max(1e-6, last - first)));
  const speeds = [...new Set([1, 10, 100, 1000, 10000, usual])].sort((a, b) => a - b);
  let messages = answer.messages, names = answer.names, slower = usual, playing = !still, at = first, told = 0, frame = 0, asking = false;
  const wholeEnd = () => messages.at(-1)?.[0] >= last;

  const text = el("span", { class: "quiet" });
  const slider = el("input", { type: "range", min: 0, max: 1000, value: 0, "aria-label": "Moment of the run", oninput: () => { seek(first + (last - first) * slider.value / 1000); } });
  const button = el("button", { onclick: () => { playing = !playing; say(); } });
  const list = el("p", { class: "quiet" });
  function say() { button.textContent = playing ? "Pause" : "Play"; }
  say();

  async function ask(from) {
    if (asking) return;
    asking = true;
    try {
      const more = await get("/api/trace/messages", { run, from });
      const under = messages.filter(m => m[0] <= at && m[0] > at - travel / slower && m[0] < (more.messages[0]?.[0] ?? from));
      messages = [...under, ...more.messages];
      names = more.names;
    } catch { playing = false; say(); } finally { asking = false; }
  }
  async function seek(moment) { at = moment; await ask(moment); draw(); }

  // What is under way at the moment `at`: sent before, not yet there.
  function draw() {
    const under = messages.filter(m => m[0] <= at && m[0] > at - travel / slower);
    const circles = under.map(([sent, from, to, size, name]) => {
      const p = place(from, to, Math.min(1, (at - sent) * slower / travel));
      return p && el("circle", { class: "dot", r: 2.5 + Math.min(7, Math.log2(1 + size / 256) / 2), cx: p.x, cy: p.y }, el("title", {}, `worker ${from}: ${names[name]}, ${bytes(size)}`));
    });
    dots.replaceChildren(...circles.filter(Boolean));
    text.textContent = `at ${duration(at - first)} of ${duration(last - first)}`;
    const newest = under.at(-1);
    if (newest) list.textContent = `worker ${newest[1]}: ${names[newest[4]]}, ${bytes(newest[3])}`;
    slider.value = String(Math.round(1000 * (at - first) / Math.max(1e-9, last - first)));
  }
  function tick(time) {
    frame = requestAnimationFrame(tick);
    const passed = Math.min(.1, (time - told) / 1000);
    told = time;
    if (!playing || asking) return;
    at += passed / slower;
    const next = messages.find(m => m[0] > at), before = messages.findLast(m => m[0] <= at)?.[0] ?? at;
    if (next && next[0] - at > pause / slower && at - before > travel / slower) at = next[0];  // nothing is under way, and nothing comes soon
    if (!next && !wholeEnd()) ask(messages.at(-1)[0]);
    if (!next && wholeEnd() && at > last + travel / slower) { seek(first); return; }
    draw();
  }
  frame = requestAnimationFrame(tick);
  if (still) draw();
  const words = s => s === 1 ? "as it was" : `${number(s)} × slower`;
  return {
    controls: el("div", { id: "replay" }, el("div", { class: "bar" }, button, slider, text,
      choice("speed", speeds.map(words), words(usual), v => { slower = speeds.find(s => words(s) === v); }), el("span", { class: "quiet" }, `${number(answer.all)} messages`)), list),
    stop() { cancelAnimationFrame(frame); } };
}
