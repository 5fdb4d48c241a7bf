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

export function bytes(value) {
  if (value === undefined || value === null) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (value >= 1024 && i < units.length - 1) { value /= 1024; ++i; }
  return `${i === 0 ? value.toFixed(0) : value.toPrecision(3)} ${units[i]}`;
}

export function count(value) {
  if (value === undefined || value === null) return "";
  for (const [limit, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (value >= limit) return `${(value / limit).toPrecision(3)} ${unit}`;
  return String(Math.round(value));
}

export function duration(seconds) {
  if (seconds === undefined || seconds === null || Number.isNaN(seconds)) return "";
  if (seconds === 0) return "0";
  if (seconds < 1e-3) return `${(seconds * 1e6).toPrecision(3)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toPrecision(3)} ms`;
  if (seconds < 59.95) return `${seconds.toPrecision(3)} s`;
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
