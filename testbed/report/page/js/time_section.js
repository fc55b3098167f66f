// GPUs and links of all schedulers on one axis of time.

import { CAUSES, jobColor } from "./colors.js";
import { fill, make, section, select } from "./dom.js";
import { swatch } from "./fabric.js";
import { secondsText } from "./format.js";
import { busiestLinks } from "./loads.js";
import { linkLoadPlot } from "./stacked.js";
import { windowControls } from "./window_controls.js";
import { FAILED, gpuTimeline } from "./timeline.js";

const FIRST_LINKS = 3;
const LISTED_LINKS = 400;

function causeLegend(page) {
  const keys = page.managed ? page.jobs.map((job, index) => [job.name, jobColor(index)]) : CAUSES.slice(0, 3).map((cause) => [cause.word, cause.color]);
  if (page.runs.some((run) => run.failures.length)) keys.push(["a part named there has failed", FAILED]);
  return make("div", { class: "legend" }, keys.map(([word, color]) => make("span", { class: "key" }, swatch(color), word)));
}

/** Timelines of every run, then the load of the chosen links by job under every scheduler. */
export function timeSection(main, page, allLoads, timelines, window) {
  const note = page.managed ? "Which job holds which GPU, from the first to the last iteration of each stay." : "A row per GPU, grouped by job: what it did.";
  const part = section("time", "GPUs and links over time", note);
  part.append(windowControls(window), causeLegend(page));
  main.append(part);
  page.runs.forEach((run, index) => {
    const box = make("div", { class: "strip" });
    part.append(box);
    const until = timelines[index].until;
    gpuTimeline(box, page, timelines[index], {
      title: `${run.title}: ${page.gpu_rows.gpu.length} GPUs${until === null ? "" : `; iterations that begin after ${secondsText(until, 0)} are only in the files`}`,
      name: `gpus-${run.scheduler}`, window, sync: "time", failures: run.failures,
    });
  });
  linkStrips(part, page, allLoads, window);
}

function linkStrips(part, page, allLoads, window) {
  const ranked = busiestLinks(page.fabric, allLoads, LISTED_LINKS);
  const chosen = ranked.slice(0, FIRST_LINKS);
  const strips = make("div");
  part.append(
    make("h3", {}, "Load of links by job"),
    make("p", { class: "facts" }, "In percent of the link's rate. Switches count bytes by link and level, not by job: bytes belong to the jobs whose connections the decision in force puts there; where jobs share a level on a link, they are apportioned by the bytes that their connections send."),
  );
  if (!ranked.length) { part.append(make("p", {}, "No bytes were sent.")); return; }
  const pickers = make("div", { class: "row" });
  const options = ranked.map((link) => [link, page.fabric.links[link].name]);
  part.append(pickers, strips);
  const boxes = chosen.map((link, place) => {
    const box = make("div", { class: "strip" });
    strips.append(box);
    pickers.append(select(`link ${place + 1}`, options, link, (value) => drawLink(box, Number(value))).element);
    return box;
  });
  function drawLink(box, link) {
    fill(box);
    page.runs.forEach((run, index) => {
      const each = make("div");
      box.append(each);
      linkLoadPlot(each, page, allLoads[index], link, {
        title: `${page.fabric.links[link].name}, ${run.title}:`, name: `load-${page.fabric.links[link].name}-${run.scheduler}`, window, sync: "time",
      });
    });
  }
  chosen.forEach((link, place) => drawLink(boxes[place], link));
}
