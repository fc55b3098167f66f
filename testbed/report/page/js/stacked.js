// Load of one link over time, stacked by job.

import { jobColor } from "./colors.js";
import { linePlot } from "./plot.js";

/** What linePlot needs to stack `layers` [{label, color, values}] in percent over the samples between `edges`. */
export function stackedSpec(edges, layers, spec) {
  const x = [...edges];
  const lead = (values) => [values[0], ...values];
  const sums = [];
  let below = new Array(x.length).fill(0);
  for (const layer of layers) {
    const shown = lead(Array.from(layer.values, (value) => Number((100 * value).toFixed(1))));
    below = below.map((value, index) => value + shown[index]);
    sums.push({ label: layer.label, color: layer.color, kind: "area", values: below, shown });
  }
  // The highest sum is drawn first, so that every layer shows above those under it.
  return { ...spec, x: { label: "time", unit: "s", values: x }, y: { label: "load", unit: "%", min: 0, max: 105 }, series: sums.reverse() };
}

/** Draw the load of `link` in one run by job. */
export function linkLoadPlot(element, page, loads, link, spec) {
  const layers = loads.jobsOn(link).map((entry) => ({
    label: entry.job < 0 ? "no known job" : page.jobs[entry.job].name,
    color: jobColor(entry.job),
    values: entry.loads,
  }));
  if (!layers.length) layers.push({ label: "nothing sent", color: jobColor(-1), values: new Float32Array(loads.samples) });
  return linePlot(element, stackedSpec(loads.edges, layers, { height: 110, ...spec }));
}
