// Numbers as people read them; times in seconds, rates in bit/s.

export function percentText(share, digits = 0) {
  return `${(100 * share).toFixed(digits)} %`;
}

export function secondsText(seconds, digits = 1) {
  return `${seconds.toFixed(digits)} s`;
}

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

export function signedText(value, digits = 0) {
  return `${value < 0 ? "\u2212" : "+"}${Math.abs(value).toFixed(digits)}`;
}
