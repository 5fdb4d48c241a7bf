// Run by browser_test.py, which has started the server: ADDRESS, TOKEN, CHROMIUM, EXPORTED.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
const { chromium } = createRequire(process.cwd() + "/package.json")("playwright-core");

const { ADDRESS, TOKEN, CHROMIUM, EXPORTED, ECHELON_SCREENSHOTS } = process.env;
// Nothing here may depend on the machine: no sandbox (root, containers), no GPU, no /dev/shm, plenty of time to start.
const browser = await chromium.launch({ executablePath: CHROMIUM, timeout: 180_000, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-crash-reporter", "--no-first-run"] });
console.log(`chromium ${browser.version()}, node ${process.version}`);
const problems = [];
let checking = "the start";  // which check is under way: what the console says belongs to it

const wrongQuestion = "optim.lrr > 1";
async function page(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 820 }, ...options });
  const p = await context.newPage();
  p.setDefaultTimeout(120_000);
  // The browser notes every answer that is no success; the one to the question that is meant to be refused is none of ours.
  const meant = m => new URL(m.location().url || ADDRESS).searchParams.get("q") === wrongQuestion;
  p.on("console", m => { if (m.type() === "error" && !meant(m)) problems.push(`${checking}: console: ${m.text()} (${m.location().url}) at ${p.url()}`); });
  p.on("pageerror", e => problems.push(`${checking}: error: ${e.stack} at ${p.url()}`));
  p.on("request", r => { if (!r.url().startsWith(ADDRESS) && !r.url().startsWith("file:") && !r.url().startsWith("data:")) problems.push(`${checking}: loaded from elsewhere: ${r.url()}`); });
  return p;
}
// The page's policy forbids what playwright's own waitForFunction does (eval), so the question is asked from here.
const until = async (p, f, argument) => {
  for (let i = 0; i < 1200; ++i) {
    if (await p.evaluate(f, argument)) return;
    await p.waitForTimeout(100);
  }
  throw new Error(`never happened: ${f}; the page at ${p.url()} says: ${(await p.locator("body").innerText()).slice(0, 600)}`);
};
const go = async (p, view, run) => {
  await p.goto(`${ADDRESS}#/${view}${run ? "?" + [run].flat().map(r => "run=" + encodeURIComponent(r)).join("&") : ""}`);
  await p.waitForSelector(`#view-${view}`);
  await until(p, () => !document.getElementById("main").hasAttribute("aria-busy"));
};
const text = p => p.locator("main").innerText();
const picture = (p, name) => ECHELON_SCREENSHOTS ? p.screenshot({ path: `${ECHELON_SCREENSHOTS}/${name}.png` }) : null;
let count = 0;
async function test(name, f) {
  checking = name;
  const before = problems.length;
  try { await f(); } catch (problem) { problems.push(`${name}: ${problem.stack}`); }
  const failed = problems.length > before;
  if (!failed) ++count;
  console.log(`${failed ? "FAILED" : "passed"}  ${name}`);
}

const p = await page();
await test("without the token nothing can be changed", async () => {
  await go(p, "runs");
  assert.ok(await p.locator("button.star").first().isDisabled());
});
await test("the token leaves the address", async () => {
  await p.goto("about:blank");
  await p.goto(`${ADDRESS}#token=${TOKEN}`);
  await p.waitForSelector("table");
  assert.ok(!p.url().includes(TOKEN));
});
await test("the table filters, sorts, groups, stars", async () => {
  await until(p, () => document.querySelectorAll("tbody tr").length === 10);
  assert.ok((await text(p)).includes("<b>bold</b>"), "names are text");
  assert.equal(await p.locator("main b").count(), 0);
  await p.fill("input[type=search]", "optim.lr > 0.03");
  await p.press("input[type=search]", "Enter");
  await until(p, () => document.querySelectorAll("tbody tr").length === 1);
  await p.fill("input[type=search]", wrongQuestion);
  await p.press("input[type=search]", "Enter");
  await until(p, () => document.querySelector("p.bad").textContent.includes("did you mean"));
  await p.fill("input[type=search]", "");
  await p.press("input[type=search]", "Enter");
  await until(p, () => document.querySelectorAll("tbody tr").length === 10);
  await p.click("th button:has-text('name')");
  const names = () => p.locator("tbody tr td:nth-child(3)").allInnerTexts();
  const first = await names();
  await p.click("th button:has-text('name')");
  assert.deepEqual(await names(), first.reverse());
  await p.selectOption("select[aria-label='group by']", "model.name");
  assert.ok((await p.locator("tr.group").count()) >= 1);
  await p.selectOption("select[aria-label='group by']", "");
  await p.click("button[aria-label='Star seed-2']");
  await p.waitForSelector("button[aria-label='Star seed-2'][aria-pressed=true]");
  await p.fill("input[aria-label='Add a column']", "optim.lr");
  await p.press("input[aria-label='Add a column']", "Enter");
  await p.waitForSelector("th:has-text('optim.lr')");
  await picture(p, "board-runs");
});
await test("curves of several runs, zoomed, with seeds as a band", async () => {
  await go(p, "curves", ["seed-1", "seed-2"]);
  const card = p.locator("section[data-metric=train_loss]");
  assert.match(await card.locator("[role=img]").getAttribute("aria-label"), /seed-1 ends at .*seed-2 ends at/);
  const box = await card.locator(".u-over").boundingBox();
  const inner = await card.locator("[role=img]").boundingBox(), drawn = await card.locator("canvas").boundingBox();
  assert.ok(drawn.x + drawn.width <= inner.x + inner.width + 1, "the curves stay inside of their card");
  await p.mouse.move(box.x + box.width / 2, box.y + 40);
  await until(p, () => [...document.querySelectorAll("section[data-metric=train_loss] .legend b")].every(b => Number(b.textContent) > 0));
  const asked = p.waitForRequest(r => r.url().includes("/api/curves") && r.url().includes("from="));
  await p.mouse.move(box.x + box.width * .3, box.y + 40);
  await p.mouse.down();
  await p.mouse.move(box.x + box.width * .6, box.y + 60, { steps: 5 });
  await p.mouse.up();
  await asked;
  await p.selectOption("select[aria-label=over]", "seconds");
  await p.check("text=seeds as bands");
  await until(p, () => document.querySelector("section[data-metric=train_loss] .legend").textContent.includes("(2)"));
});
await test("one run has its result, curves, confusion matrix, weights, checkpoints, recipe and log", async () => {
  await go(p, "run", "seed-1");
  const shown = await text(p);
  for (const part of ["Result", "Confusion matrix", "Weights and gradients", "Checkpoints", "Recipe", "Log of rank 0", "test_accuracy"]) assert.ok(shown.includes(part), part);
  assert.equal(await p.locator("table.matrix tbody tr").count(), 10);
  assert.ok((await p.locator("canvas").count()) >= 2);
  await p.selectOption("select[aria-label='difference to']", "seed-2");
  await until(p, () => document.querySelector("main").innerText.includes("train.seed"));
  await p.evaluate(() => [...document.querySelectorAll("h2")].find(h => h.textContent.includes("gradients")).scrollIntoView());
  await picture(p, "board-histograms");
  await p.evaluate(() => scrollTo(0, 0));
  await picture(p, "board-run");
});
await test("a run on numbers has its own metrics, in its own units", async () => {
  await go(p, "run", "houses");
  const { values, checkpoints } = await p.evaluate(async () => await (await fetch("/api/run?name=houses")).json());
  const shown = await text(p);
  for (const metric of ["val_mae", "val_r2", "test_rmse", "tested_step"]) assert.ok(shown.includes(metric), metric);
  for (const metric of ["loss", "mae", "rmse", "r2"]) assert.equal(await p.locator(`section[data-metric=${metric}] canvas`).count(), 1, metric);
  assert.equal(values.best_metric, "val_loss");
  assert.ok(checkpoints.some(c => c.score < 0), "a loss that is lower has a higher score");
  const losses = await p.locator("h2:has-text('Checkpoints') + .scroll tbody td:nth-child(2)").allInnerTexts();
  assert.ok(losses.every(l => !l.startsWith("-")), losses.join());
  await go(p, "compare", ["houses"]);
  await p.selectOption("select[aria-label=metric]", "val_mae");
  await p.fill("input[aria-label=Target]", String(values.val_mae * 1.001));
  await p.press("input[aria-label=Target]", "Enter");
  await until(p, () => /steps? to target|step to target/.test(document.querySelector("main").innerText) && !document.querySelector("main").innerText.includes("not reached"));
  const reach = await p.evaluate(async t => (await (await fetch(`/api/reach?run=houses&metric=val_mae&target=${t}&lower=1`)).json()).runs[0].step, values.val_mae * 1.001);
  assert.ok((await text(p)).includes(String(reach)), "the first step at which the error was so low");
});
await test("what was sampled from a run stands on its page", async () => {
  await go(p, "run", "story");
  const { texts } = await p.evaluate(async () => await (await fetch("/api/run?name=story")).json());
  assert.equal(texts.length, 1);
  assert.equal(await p.locator("pre.text").textContent(), "the cat" + texts[0].text);
  const sheet = p.locator("canvas[aria-label^='Pictures']");
  assert.ok(await sheet.evaluate(c => c.width > 100 && c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v, i) => i % 4 < 3 && v > 100)));
});
await test("a live run moves by itself and takes a request", async () => {
  await go(p, "run", "live");
  const step = () => p.evaluate(async () => (await (await fetch("/api/run?name=live")).json()).values.last_step);
  const before = await step();
  await until(p, async b => (await (await fetch("/api/run?name=live")).json()).values.last_step > b, before);
  await p.click("#actions button:has-text('Checkpoint')");
  await until(p, () => document.getElementById("toast").textContent.includes("checkpoint"));
  await until(p, async () => (await (await fetch("/api/run?name=live")).json()).journal.length > 0);
  assert.equal(await p.locator("#live").innerText(), "live");
});
await test("the workers' timeline zooms by keyboard", async () => {
  await go(p, "workers", "easgd");
  assert.ok((await text(p)).includes("waiting for rank"), "a wait has a bar of its own");
  assert.match(await text(p), /waits for [01]/);  // which of the two is the slower one is chance
  const asked = p.waitForRequest(r => r.url().includes("/api/trace?") && r.url().includes("from="));
  await p.locator("canvas").focus();
  await p.keyboard.press("+");
  await asked;
  await p.keyboard.press("0");
  assert.ok((await text(p)).includes("What took longest"));
  await p.evaluate(() => scrollTo(0, 0));
  await picture(p, "board-workers");
});
await test("cluster, system, graph, compare and plans have content", async () => {
  await go(p, "cluster", "easgd");
  assert.ok((await text(p)).includes("2 workers on 1 host"));
  assert.ok((await text(p)).includes("Every pair"));
  assert.equal(await p.locator("table.matrix tbody tr").count(), 2);
  assert.match(await p.locator("#alive").innerText(), /rank 0.*has ended.*rank 1.*has ended/s);
  await picture(p, "board-cluster");
  await go(p, "cluster", "lost");
  assert.match(await p.locator("#alive").innerText(), /rank 0.*because rank 1 was lost.*rank 1.*lost: .*signal 9/s);
  await go(p, "system", "easgd");
  assert.ok((await text(p)).includes("elastic"));
  const sent = await p.evaluate(async () => (await (await fetch("/api/run?name=easgd")).json()).cluster.sent);
  assert.ok(sent[0][1] > 0 && sent[1][0] > 0);
  assert.match(await p.locator("path.wire title").nth(0).textContent(), /worker 0 to worker 1: \d/);
  assert.equal(await p.locator("text.onwire").count(), 2);
  // Its messages travel one by one; the picture stands still when it is told to.
  assert.match(await p.locator("#replay").innerText(), /[\d,]+ messages/);
  await until(p, () => document.querySelector("circle.dot title")?.textContent.match(/worker [01]: .* to rank [01], /));
  await p.locator("input[aria-label='Moment of the run']").fill("500");
  await until(p, () => Math.abs(document.querySelector("input[aria-label='Moment of the run']").value - 500) < 100);
  await picture(p, "board-system");
  await p.click("#replay button");
  assert.equal(await p.locator("#replay button").innerText(), "Play");
  const moment = () => p.locator("#replay .quiet").first().innerText();
  const stands = await moment();
  await p.waitForTimeout(300);
  assert.equal(await moment(), stands);
  await go(p, "graph", "seed-1");
  assert.ok((await text(p)).includes("conv1"));
  assert.ok((await text(p)).includes("32 × 6 × 28 × 28, 588 KiB"));
  assert.ok((await text(p)).includes("% of the time"));
  const shares = [...(await text(p)).matchAll(/([\d.]+) % of the time/g)].map(m => Number(m[1])).reduce((a, b) => a + b, 0);
  assert.ok(Math.abs(shares - 100) < 2, `the layers have ${shares} % of their time`);
  assert.equal(await p.locator("path.edge").count(), await p.locator("rect.node").count());  // a chain
  await go(p, "compare", ["seed-1", "easgd"]);
  assert.ok((await text(p)).includes("seconds to target"));
  assert.ok((await text(p)).includes("exchange.name") && !(await text(p)).includes("system.mean_staleness"), "what differed are settings");
  await go(p, "plans");
  assert.ok((await text(p)).includes("easgd"));
  // workers, samples/s, time of a step, memory of a rank, bytes: all of them without a prediction too
  assert.match(await p.locator("tr:has-text('split')").innerText(), /pipeline=2.*\s2\s+[\d,.]+\s+[\d.]+ m?s\s+[\d.]+ MiB\s.*\d %\s*[\d.]+ %/s);
  const foreseen = await p.locator("tr:has-text('foreseen')").innerText();
  assert.match(foreseen, /12.0 ms\s*10.0 ms \(−17 %\)\s*2.00 MiB\s*3.00 MiB \(\+50 %\)/);
  assert.ok((await text(p)).includes("foreseen: the links were slower"));
  await picture(p, "board-plans");
  await go(p, "graph", "split");
  assert.match(await text(p), /stage 0, rank 0/);
  assert.match(await text(p), /stage 1, rank 1/);
  assert.match(await p.locator("tr:has(td:text-is('relu'))").innerText(), /with conv1/);
  await picture(p, "board-graph");
});
await test("marks at axes are short and round, and differ from each other", async () => {
  const said = await p.evaluate(async () => {
    const { bytes, count, digitsOf, duration, mark, offBy, roundMarks } = await import("/format.js");
    const marks = (from, to) => { const all = roundMarks(from, to, 6); return all.map(v => duration(v, digitsOf(all))); };
    return { sizes: [0.25, 99999, 17659000, -2e6].map(mark), whole: marks(0, 0.912), near: marks(1.2345, 1.2347), late: marks(100, 100.001), off: [offBy(10, 12), offBy(0.9999, 1)],
             large: [bytes(1010 * 1024), count(999700), duration(0.9999)] };
  });
  assert.deepEqual(said.sizes, ["0.25", "99,999", "17.7 M", "-2.00 M"]);
  assert.deepEqual(said.whole, ["0", "200 ms", "400 ms", "600 ms", "800 ms"]);
  for (const marks of [said.near, said.late]) assert.equal(new Set(marks).size, marks.length, marks.join());
  assert.deepEqual(said.off, ["−17 %", "0 %"]);
  assert.deepEqual(said.large, ["1010 KiB", "1000 k", "1000 ms"]);
});
await test("the keyboard reaches the views", async () => {
  const keys = await page();
  await go(keys, "runs");
  for (const key of ["Tab", "Tab", "Tab", "Tab", "Enter"]) await keys.keyboard.press(key);  // skip link, brand, Runs, Curves
  await keys.waitForSelector("#view-curves");
  await keys.context().close();
});
for (const colorScheme of ["light", "dark"])
  await test(`narrow and ${colorScheme}`, async () => {
    const narrow = await page({ viewport: { width: 380, height: 740 }, colorScheme });
    for (const [view, run] of [["runs"], ["curves", "seed-1"], ["run", "seed-1"], ["workers", "easgd"], ["cluster", "easgd"], ["system", "easgd"], ["graph", "seed-1"], ["compare", ["seed-1", "easgd"]], ["plans"]]) {
      await go(narrow, view, run);
      const wide = await narrow.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 1, `${view} is ${wide} dots too wide`);
      const [back, front] = await narrow.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map(c => c.match(/\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)));
      assert.ok(colorScheme === "dark" ? back < 150 && front > 500 : back > 700 && front < 200, `${view}: ${back} ${front}`);
    }
    await narrow.context().close();
  });
await test("the exported run opens by itself", async () => {
  const alone = await page();
  await alone.goto(EXPORTED);
  assert.ok((await alone.locator("body").innerText()).includes("Confusion matrix"));
  assert.ok((await alone.locator("svg").count()) >= 1);
});
if (ECHELON_SCREENSHOTS) {
  const dark = await page({ colorScheme: "dark" });
  await go(dark, "curves", ["seed-1", "seed-2", "easgd"]);
  await picture(dark, "board-curves-dark");
}
await browser.close();
for (const problem of problems) console.log("\n" + problem);
console.log(`${count} passed, ${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
