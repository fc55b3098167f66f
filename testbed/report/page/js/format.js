// Numbers as people read them; times in seconds, rates in bit/s.

export function percentText(share, digits = 0) {
  return `${(100 * share).toFixed(digits)} %`;
}

/** "1.5 s"; what these digits do not show has a smaller unit: "28 us". */
export function secondsText(seconds, digits = 1) {
  const size = Math.abs(seconds);
  if (size > 0 && size < Math.min(1, 10 ** (1 - digits))) {
    const [factor, unit] = size >= 1e-3 ? [1e-3, "ms"] : [1e-6, "us"];
    return `${Number((seconds / factor).toPrecision(4))} ${unit}`;
  }
  return `${seconds.toFixed(digits)} s`;
}

/** A cell of a column whose title says s: "1.500", or "28 us" where these digits do not show it. */
export const secondsCell = (seconds, digits = 1) => secondsText(seconds, digits).replace(/ s$/, "");

/** A cell of a column whose title says ms: "12", or "0.03 ms" where whole ones do not show it. */
export const millisecondsCell = (ms) => (ms > 0 && ms < 1 ? secondsText(ms / 1000, 0) : ms.toFixed(0));

const TICKS = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 6 });

/** The label of a tick: all its digits, also where it is far below one. */
export const tickText = (value) => (value === null ? "" : TICKS.format(value));

/** 200e9 -> "200 Gbit/s". */
export function rateText(rate) {
  for (const [factor, unit] of [[1e12, "Tbit/s"], [1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]]) {
    if (rate >= factor) return `${Number((rate / factor).toPrecision(4))} ${unit}`;
  }
  return `${Number(rate.toPrecision(4))} bit/s`;
}

/** "1 job", "3 jobs". */
export function countText(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** A number with so many digits; what rounds to nothing has no sign. */
export function fixedText(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text;
}

export function signedText(value, digits = 0) {
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return `${value < 0 ? "\u2212" : "+"}${text}`;
}

/** Points from one share to another: the difference of the two as `percentText` shows them, so that the three agree. */
export function pointsBetween(before, after, digits = 0) {
  return signedText(Number((100 * after).toFixed(digits)) - Number((100 * before).toFixed(digits)), digits);
}
