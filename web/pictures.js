// Small pictures: grey images, histograms.

import { el } from "./dom.js";
import { number } from "./format.js";

export function drawPixels({ width, height, pixels, is, said }) {
  const canvas = el("canvas", { class: "pixels", width, height, role: "img", "aria-label": `${is} read as ${said}` });
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  pixels.forEach((p, i) => image.data.set([p, p, p, 255], 4 * i));
  context.putImageData(image, 0, 0);
  return canvas;
}

export function drawBitmap(bitmap, about) {
  const canvas = el("canvas", { class: "bitmap", width: bitmap.width, height: bitmap.height, role: "img", "aria-label": about });
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  return canvas;
}

export function drawHistogram(h, title, colourName) {
  if (!h) return el("p", { class: "quiet" }, `${title}: no finite numbers`);
  const most = Math.max(...h.counts), width = 300, height = 64, top = 16, step = width / h.counts.length;
  return el("svg", { viewBox: `0 0 ${width} ${top + height + 18}`, width: "100%", role: "img", "aria-label": `${title} from ${number(h.low, 3)} to ${number(h.high, 3)}` },
    el("text", { x: 0, y: 11, class: "quiet" }, title),
    h.counts.map((n, i) => el("rect", { x: i * step, y: top + height - height * n / most, width: step - .6, height: height * n / most, fill: `var(${colourName})` })),
    el("text", { x: 0, y: top + height + 14, class: "quiet" }, number(h.low, 3)),
    el("text", { x: width, y: top + height + 14, class: "quiet", "text-anchor": "end" }, number(h.high, 3)));
}
