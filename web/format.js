// Numbers and times as people read them.

export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value !== "number") return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

// Three digits, or all of those before the point: never an exponent.
const rounded = (value, digits = 3) => value >= 10 ** digits - .5 ? value.toFixed(0) : value.toPrecision(digits);

export function bytes(value) {
  if (value === undefined || value === null) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (value >= 1024 && i < units.length - 1) { value /= 1024; ++i; }
  return `${i === 0 ? value.toFixed(0) : rounded(value)} ${units[i]}`;
}

export function count(value) {
  if (value === undefined || value === null) return "";
  for (const [limit, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (value >= limit) return `${rounded(value / limit)} ${unit}`;
  return String(Math.round(value));
}

// What stands at an axis: short, whatever the size.
export function mark(value) {
  const size = Math.abs(value);
  return size >= 1e5 && size < 1e15 ? `${value < 0 ? "-" : ""}${count(size)}` : number(value, 3);
}

// How many digits tell times at an axis apart; more than three are written in seconds, not in minutes.
export function digitsOf(marks) {
  if (marks.length < 2) return 3;
  const step = marks[1] - marks[0], digits = 1 + Math.floor(Math.log10(marks.at(-1))) - Math.floor(Math.log10(step) + 1e-9);
  return Math.max(step < 1 && marks.at(-1) >= 59.95 ? 4 : 3, digits);
}

// Round numbers between `from` and `to`, about `most` of them: steps of 1, 2 or 5 times a power of ten.
export function roundMarks(from, to, most) {
  const least = (to - from) / most, power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find(digit => digit * power >= least * (1 - 1e-9));
  const marks = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; ++k) marks.push(k * step);
  return marks;
}

// With more than three digits: always in seconds or less.
export function duration(seconds, digits = 3) {
  if (seconds === undefined || seconds === null || Number.isNaN(seconds)) return "";
  if (seconds === 0) return "0";
  if (seconds < 1e-3) return `${rounded(seconds * 1e6, digits)} µs`;
  if (seconds < 1) return `${rounded(seconds * 1e3, digits)} ms`;
  if (seconds < 59.95 || digits > 3) return `${rounded(seconds, digits)} s`;
  const whole = Math.round(seconds), minutes = Math.round(seconds / 60);
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

export function when(unixSeconds) {
  if (!unixSeconds) return "";
  const d = new Date(unixSeconds * 1000);
  const two = n => String(n).padStart(2, "0");
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

export const percent = share => `${(100 * share).toFixed(1)} %`;

// By how much a prediction was off, as a whole percentage with its sign.
export function offBy(predicted, measured) {
  const off = Math.round(100 * (predicted / measured - 1));
  return off === 0 ? "0 %" : `${off > 0 ? "+" : "−"}${Math.abs(off)} %`;
}
