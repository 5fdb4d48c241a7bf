// The peer of bench/compare_serve: the same route of the Open Inference Protocol over Node's HTTP server, answered by
// onnxruntime-node. One thread for each core given; no batching, as an ordinary service around it is written.
//   node peer_serve.js NODE_MODULES MODEL.onnx PORT THREADS
const http = require('http');
const path = require('path');
const [modules, file, port, threads] = process.argv.slice(2);
const ort = require(path.join(modules, 'onnxruntime-node'));
const arrays = { FP32: ['float32', Float32Array], INT32: ['int32', Int32Array] };

(async () => {
  const session = await ort.InferenceSession.create(file, { intraOpNumThreads: Number(threads), logSeverityLevel: 3 });
  http.createServer((request, response) => {
    if (request.method === 'GET') return response.end('{}');
    const pieces = [];
    request.on('data', piece => pieces.push(piece));
    request.on('end', async () => {
      try {
        const asked = JSON.parse(Buffer.concat(pieces).toString());
        const feeds = {};
        for (const i of asked.inputs) {
          const [kind, array] = arrays[i.datatype];
          feeds[i.name] = new ort.Tensor(kind, array.from(i.data.flat(Infinity)), i.shape);
        }
        const said = await session.run(feeds);
        const outputs = Object.keys(said).map(name =>
          ({ name, datatype: 'FP32', shape: said[name].dims, data: Array.from(said[name].data) }));
        response.setHeader('Content-Type', 'application/json');
        response.end(JSON.stringify({ model_name: 'model', model_version: '1', outputs }));
      } catch (e) {
        response.statusCode = 400;
        response.end(JSON.stringify({ error: String(e.message) }));
      }
    });
  }).listen(Number(port), '127.0.0.1');
})();
