// Groups of runs: the same parameters, scenario, engine and scheduler, with different seeds.

import { fixedText } from "./format.js";

/** What can be compared: `scale` x the number is in `unit`. */
export const METRICS = [
  { key: "gpu_utilization", word: "GPU utilisation", unit: "%", scale: 100, digits: 1, meaning: "busy / allocated GPU time of all jobs" },
  { key: "gpu_utilization_points", word: "gain over the baseline", unit: "points", scale: 1, digits: 1, meaning: "difference to the first scheduler of the same run, in percentage points" },
  { key: "mean_jct_s", word: "mean JCT", unit: "s", scale: 1, digits: 1, meaning: "from arrival to the end of the last declared iteration, mean over the jobs" },
];

/** A metric of a group as {n, mean, half, values, shown, unproven} in the metric's unit; null where it has none. */
export function groupNumbers(group, metric) {
  const found = group.metrics[metric.key];
  if (!found) return null;
  const half = found.half === null ? null : found.half * metric.scale;
  const values = found.values.map(([seed, value, shown]) => [seed, value * metric.scale, shown]);
  return { n: found.n, mean: found.mean * metric.scale, half, values, shown: found.shown, unproven: found.proven === false };
}

/** The mean; in parentheses a difference that is not larger than its spread: it proves nothing. */
export const shownMean = (numbers) => (numbers.unproven ? `(${numbers.shown})` : numbers.shown);
export const shownHalf = (numbers, metric) => (numbers.half === null ? "" : `\u00b1 ${numbers.half.toFixed(metric.digits)}`);

/** One sentence about a group, for who points at it. */
export function groupHover(name, numbers, metric) {
  const half = numbers.half === null ? "one seed, no interval" : `95 % confidence interval ${fixedText(numbers.mean - numbers.half, metric.digits)} to ${fixedText(numbers.mean + numbers.half, metric.digits)} ${metric.unit}`;
  const values = numbers.values.map(([seed, , shown]) => `seed ${seed}: ${shown}`).join(", ");
  const why = numbers.n > 1 ? "not larger than its spread over the seeds" : "of one seed, without a spread";
  const proof = numbers.unproven ? `; ${why}: it proves nothing` : "";
  return `${name}: ${shownMean(numbers)} ${metric.unit}, ${half} (${values})${proof}`;
}

/** The parameters by which groups can be told apart: [{label, values, of(group)}], only those with several values. */
export function groupAxes(page) {
  const own = page.keys.map((label, index) => ({ label, of: (group) => group.settings[index] }));
  const fixed = ["scenario", "engine", "scheduler"].map((label) => ({ label, of: (group) => group[label] }));
  const axes = [...own, ...fixed].map((axis) => ({ ...axis, values: [...new Set(page.groups.map(axis.of))] }));
  return axes.filter((axis) => axis.values.length > 1);
}

/** A group by what tells it from the others. */
export function groupLabel(page, group) {
  return groupAxes(page).map((axis) => axis.of(group)).join(", ") || group.scheduler;
}
