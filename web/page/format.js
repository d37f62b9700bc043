// Figures and names as people read them.

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const clock = new Intl.DateTimeFormat(undefined,
  { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  for (; value >= 1023.5 && unit + 1 < BYTES.length; ++unit) value /= 1024;
  return (unit === 0 || value >= 99.5 ? value.toFixed(0) : value.toFixed(1)) + " " + BYTES[unit];
}

// "18.0 of 80.0 GiB".
export function bytesOf(value, whole) {
  const one = bytes(value), all = bytes(whole);
  const unit = all.slice(all.indexOf(" "));
  return (one.endsWith(unit) ? one.slice(0, -unit.length) : one) + " of " + all;
}

export function perSecond(value) {
  return value === null ? "–" : bytes(value) + "/s";
}

export function count(value) {
  if (value === null) return "–";
  if (value < 9.95) return value.toFixed(1);
  return Math.round(value).toLocaleString("en");
}

export function percent(part) {
  return part === null ? "–" : Math.round(100 * part) + " %";
}

// Of what takes from microseconds to minutes.
export function duration(seconds) {
  if (seconds === null) return "–";
  if (seconds < 1e-3) return (1e6 * seconds).toFixed(0) + " µs";
  if (seconds < 1) return (1e3 * seconds).toPrecision(3).replace(/\.?0+$/, "") + " ms";
  return seconds.toPrecision(3).replace(/\.0+$/, "") + " s";
}

export function age(seconds) {
  const whole = Math.floor(seconds);
  if (whole < 120) return whole + " s";
  if (whole < 7200) return Math.floor(whole / 60) + " min";
  if (whole < 172800) return Math.floor(whole / 3600) + " h";
  return Math.floor(whole / 86400) + " days";
}

export function time(seconds) {
  return clock.format(new Date(1000 * seconds));
}

// Names are their users' choice: what would hide, turn or break them is shown as a sign.
export function plain(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, "\u{FFFD}");
}

export function fileName(path) {
  return plain(path.slice(path.lastIndexOf("/") + 1) || path);
}
