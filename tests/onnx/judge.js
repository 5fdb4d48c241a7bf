// Runs every case of CASES/cases.json in onnxruntime and prints, for each of its outputs, the largest difference from what
// the case expects, divided by the largest number that it expects (at least 1). One process for all cases.
//   node judge.js NODE_MODULES CASES
const fs = require('fs');
const path = require('path');
const ort = require(path.join(process.argv[2], 'onnxruntime-node'));
const folder = process.argv[3];
const cases = JSON.parse(fs.readFileSync(path.join(folder, 'cases.json')));
const arrays = { int32: Int32Array, int64: BigInt64Array, float32: Float32Array };

async function judge(one) {
  const session = await ort.InferenceSession.create(path.join(folder, one.file), { intraOpNumThreads: 1, logSeverityLevel: 3 });
  const feeds = {};
  for (const i of one.inputs) feeds[i.name] = new ort.Tensor(i.dtype, arrays[i.dtype].from(i.data), i.dims);
  const said = await session.run(feeds);
  for (const o of one.outputs) {
    const got = said[o.name];
    if (!got) { console.log(`${one.name} ${o.name} missing`); continue; }
    let worst = got.data.length === o.data.length ? 0 : Infinity, size = 1;
    for (let k = 0; k < o.data.length; ++k) {
      const difference = Math.abs(Number(got.data[k]) - o.data[k]);
      worst = Number.isNaN(difference) ? Infinity : Math.max(worst, difference);
      size = Math.max(size, Math.abs(o.data[k]));
    }
    console.log(`${one.name} ${o.name} ${worst / size}`);
  }
}

(async () => {
  for (const one of cases) await judge(one).catch(e => console.log(`${one.name} - failed: ${String(e.message).replace(/\n/g, ' ')}`));
})();
