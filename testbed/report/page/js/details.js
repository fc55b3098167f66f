// What one link or one job did: the panel beside the fabric.

import { jobColor, runColor } from "./colors.js";
import { fill, make } from "./dom.js";
import { swatch } from "./fabric.js";
import { countText, percentText, rateText } from "./format.js";
import { LINK_KINDS } from "./loads.js";
import { linePlot } from "./plot.js";
import { linkLoadPlot } from "./stacked.js";
import { sortableTable } from "./table.js";

const jobName = (page, job) => (job < 0 ? "no known job" : page.jobs[job].name);

/** The last decision's flows over `link`, by job: a flow's id begins with its job's name. */
function flowsOver(run, link) {
  return run.decisions.paths.filter(([, path]) => path.includes(link)).map(([flow]) => flow);
}

/** Which jobs send on a link, on which levels, how much of the time; and the same over time. */
export function linkPanel(element, page, place, loads, link, window, showJob) {
  const run = page.runs[place];
  const about = page.fabric.links[link];
  const entries = loads.jobsOn(link);
  const whole = loads.edges[loads.samples] - loads.edges[0] || 1;
  const rows = entries.map((entry) => {
    let [busy, mean, peak] = [0, 0, 0];
    entry.loads.forEach((load, i) => {
      const share = (loads.edges[i + 1] - loads.edges[i]) / whole;
      if (load > 0.01) busy += share;
      mean += load * share;
      peak = Math.max(peak, load);
    });
    const number = (value) => [percentText(value), value];
    const unneeded = run.job_numbers[jobName(page, entry.job)]?.level === null;
    return [jobName(page, entry.job), unneeded ? "-" : entry.levels.sort().join(", "), number(busy), number(mean), number(peak)];
  });
  const box = make("div");
  const plot = make("div");
  const flows = flowsOver(run, link);
  fill(element,
    make("h3", {}, about.name),
    make("p", { class: "facts" }, `${run.title}: link of ${rateText(about.rate)} between ${LINK_KINDS[about.kind] ?? about.kind}. `,
      entries.length ? `${countText(entries.filter((entry) => entry.job >= 0).length, "job")} sent on it; for ${percentText(loads.sharedTime(link))} of the time two or more did.` : "Nothing was sent on it."),
    box, plot,
    flows.length ? make("details", {}, make("summary", {}, `${countText(flows.length, "connection")} at the end of the run`), make("ul", { class: "flows" }, flows.map((flow) => make("li", {}, flow)))) : null,
  );
  if (!entries.length) return;
  sortableTable(box, [
    { title: "job", text: true }, { title: "level", meaning: "0 is served first; - where no levels are needed" },
    { title: "of the time", meaning: "share of the samples in which it sent at more than 1 % of the link's rate" },
    { title: "mean load", meaning: "share of the link's rate, over the whole run" }, { title: "peak", meaning: "highest load in a sample" },
  ], rows, { title: "Jobs on this link", name: `${about.name}-jobs`, onRow: (row) => entries[row].job >= 0 && showJob(entries[row].job) });
  linkLoadPlot(plot, page, loads, link, { title: "load by job:", name: `${about.name}-load`, window, sync: "time" });
}

/** A job's numbers under every scheduler, and the duration of its iterations. */
export function jobPanel(element, page, timelines, allLoads, place, job) {
  const about = page.jobs[job];
  const links = allLoads[place].linksOf(job);
  const between = [...links].filter((link) => page.fabric.links[link].kind !== "host-tor").length;
  const head = make("h3", {}, swatch(jobColor(job)), ` ${about.name}`);
  const [box, plot] = [make("div"), make("div")];
  fill(element, head,
    make("p", { class: "facts" }, `${about.model} on ${countText(about.gpus, "GPU")}. Under ${page.runs[place].title} it sends over ${countText(links.size, "link")}, ${between} of them between switches; they are highlighted.`),
    box, plot);
  const rows = page.runs.map((run) => {
    const numbers = run.job_numbers[about.name];
    const level = numbers?.level ?? null;
    return [run.title, level === null ? "-" : [String(level), level], numbers ? [percentText(numbers.util, 1), numbers.util] : "-"];
  });
  sortableTable(box, [{ title: "scheduler", text: true }, { title: "level", meaning: "0 is served first; - where no levels are needed" }, { title: "util", meaning: "share of its GPU time that it computed" }],
    rows, { title: "This job under each scheduler", name: `${about.name}-schedulers` });
  iterationPlot(plot, page, timelines, job);
}

/** Duration of each iteration over time, a colour per scheduler. */
export function iterationPlot(element, page, timelines, job) {
  const series = timelines.map((timeline, index) => {
    const rows = timeline.iterationsOf(job).filter((row) => !row.disturbed);
    return { label: page.runs[index].title, color: runColor(index), kind: "points", size: 5, x: rows.map((row) => row.start), values: rows.map((row) => row.duration) };
  }).filter((each) => each.x.length);
  if (!series.length) return;
  linePlot(element, {
    title: "iterations:", name: `${page.jobs[job].name}-iterations`, height: 150,
    x: { label: "begin", unit: "s", values: [] }, y: { label: "duration", unit: "s", min: 0 }, series,
  });
}
