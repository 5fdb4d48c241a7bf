// Elements from data. Text is always text, never markup, so nothing of a run can become part of the page's code.

const svgNames = new Set(["svg", "g", "rect", "line", "path", "circle", "text", "title", "marker", "defs"]);

export function el(name, properties = {}, ...children) {
  const node = svgNames.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else if (key === "value" || key === "checked" || key === "disabled" || key === "selected") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== undefined && child !== null && child !== false) node.append(child instanceof Node ? child : String(child));
  return node;
}

// Gives a node these children, as el() takes them.
export function fill(node, ...children) {
  node.replaceChildren(...el("div", {}, ...children).childNodes);
}

export function toast(text) {
  const node = document.getElementById("toast");
  node.textContent = text;
  node.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { node.hidden = true; }, 5000);
}

export function choice(label, options, value, onchange) {
  const select = el("select", { onchange: () => onchange(select.value), "aria-label": label },
    options.map(o => el("option", { value: o, selected: o === value }, o || "–")));
  return el("label", {}, label, select);
}

export function check(label, checked, onchange) {
  const box = el("input", { type: "checkbox", checked, onchange: () => onchange(box.checked) });
  return el("label", {}, box, label);
}

export const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
export const seriesColour = i => colour("s" + (i % 8));
