// The fabric with its controls: scheduler, time, link, job; and what they show.

import { changesBetween } from "./changes.js";
import { jobColor } from "./colors.js";
import { linkPanel, jobPanel } from "./details.js";
import { button, fill, make, section, select } from "./dom.js";
import { downloadButtons, csvText, CSV, SVG } from "./download.js";
import { drawFabric, loadLegend, swatch } from "./fabric.js";
import { secondsText } from "./format.js";
import { busiestLinks } from "./loads.js";

const PLAY_MS = 350;
const LISTED = 3000;
const CHIPS = 12;

/** Draw the section; returns {showRun, showTime, showLink, showJob}. */
export function fabricSection(main, page, allLoads, timelines, window) {
  const state = { run: 0, before: 0, link: -1, job: -1, mean: false, timer: 0, time: 0 };
  const part = section("fabric", "The fabric",
    "Hosts at the bottom, ToRs above them, then aggregation and core. Each cable is two lines, one per direction, coloured by load. Choose a link or a job, or click a link.");
  const [picture, panel, changes] = [make("div", { class: "fabric" }), make("div", { class: "panel" }), make("div", { class: "changes" })];
  const told = make("output", { class: "told" });
  const view = () => allLoads[state.run];

  const slider = make("input", { type: "range", min: 0, max: Math.max(0, view().samples - 1), step: 1, value: 0, id: "time-slider", oninput: () => showSample(Number(slider.value)) });
  const average = make("input", { type: "checkbox", onchange: () => { state.mean = average.checked; paint(); } });
  const play = button("play", () => (state.timer ? stop() : start()), { "aria-pressed": "false" });
  const runs = select("scheduler", page.runs.map((run, index) => [index, run.title]), 0, (value) => showRun(Number(value)));
  const links = select("link", [[-1, "none"], ...listedLinks(page, allLoads).map((index) => [index, page.fabric.links[index].name])], -1, (value) => showLink(Number(value)));
  const jobs = select("job", [[-1, "all"], ...page.jobs.map((job, index) => [index, job.name])], -1, (value) => showJob(Number(value)));

  const chips = page.jobs.map((job, index) => button("", () => showJob(state.job === index ? -1 : index), { class: "chip", "aria-pressed": "false", "aria-label": `job ${job.name}` }));
  chips.forEach((chip, index) => fill(chip, swatch(jobColor(index)), page.jobs[index].name));

  part.append(...[
    make("div", { class: "row" }, runs.element, links.element, jobs.element),
    make("div", { class: "row slider" }, play, make("label", { class: "control grow", for: "time-slider" }, "time ", slider), told,
      make("label", { class: "control" }, average, " average of the run")),
    page.jobs.length <= CHIPS ? make("div", { class: "row" }, chips) : null,
    make("div", { class: "columns" }, make("div", { class: "wide" }, picture, loadLegend()), panel),
    changes,
  ].filter(Boolean));
  main.append(part);
  const drawing = page.fabric.omitted ? undrawnFabric(picture, page) : drawFabric(picture, page.fabric, { onLink: showLink });
  drawing.controls.append(...downloadButtons(
    ["CSV", "link-loads.csv", CSV, () => loadsCsv(page, view(), page.runs[state.run].scheduler)],
    ["SVG", "fabric.svg", SVG, drawing.svg],
  ));

  function paint() {
    const loads = view();
    const sample = Number(slider.value);
    drawing.setLoads(state.mean ? loads.mean() : loads.at(sample));
    const [from, to] = [loads.edges[sample], loads.edges[sample + 1]];
    const text = state.mean ? "average of the run" : `${secondsText(from)} to ${secondsText(to)}`;
    told.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  }

  function showSample(sample) {
    slider.value = sample;
    state.time = view().edges[sample];
    state.mean = average.checked = false;
    paint();
  }

  function showRun(run) {
    if (run !== state.run) state.before = state.run;
    state.run = run;
    runs.box.value = run;
    slider.max = Math.max(0, view().samples - 1);
    slider.value = view().sampleAt(state.time);
    paint();
    changesBetween(changes, page, allLoads, state.before, run);
    showDetails();
  }

  function showLink(link) {
    [state.link, state.job] = [link, -1];
    showDetails();
  }

  function showJob(job) {
    [state.job, state.link] = [job, -1];
    showDetails();
  }

  function showDetails() {
    links.box.value = state.link;
    jobs.box.value = state.job;
    chips.forEach((chip, index) => chip.setAttribute("aria-pressed", String(index === state.job)));
    drawing.choose(state.link);
    drawing.highlight(state.job < 0 ? null : view().linksOf(state.job));
    if (state.link >= 0) linkPanel(panel, page, state.run, view(), state.link, window, showJob);
    else if (state.job >= 0) jobPanel(panel, page, timelines, allLoads, state.run, state.job);
    else fill(panel, make("p", { class: "facts" }, "No link or job is chosen."));
  }

  function start() {
    state.timer = setInterval(() => showSample((Number(slider.value) + 1) % view().samples), PLAY_MS);
    fill(play, "stop");
    play.setAttribute("aria-pressed", "true");
  }

  function stop() {
    clearInterval(state.timer);
    state.timer = 0;
    fill(play, "play");
    play.setAttribute("aria-pressed", "false");
  }

  showSample(view().busiestSample(window.first[0], window.end));
  state.link = busiestLinks(page.fabric, [view()], 1)[0] ?? -1;
  showDetails();
  return { showRun, showSample, showLink, showJob };
}

/** Links to choose from, in the order of the fabric; the busiest of many. */
function listedLinks(page, allLoads) {
  const all = page.fabric.links.map((link, index) => index);
  return all.length <= LISTED ? all : busiestLinks(page.fabric, allLoads, LISTED);
}

/** In place of a fabric that is too large to be drawn. */
function undrawnFabric(element, page) {
  const nothing = () => {};
  const controls = make("div", { class: "row" });
  fill(element, make("p", { class: "facts" }, `This fabric has ${page.fabric.omitted + page.fabric.links.length} links: too many to be drawn. The busiest are in the list.`), controls);
  return { setLoads: nothing, highlight: nothing, choose: nothing, controls, svg: () => "" };
}

function loadsCsv(page, loads, scheduler) {
  const rows = loads.series.flatMap(({ link, job, level, index }) => Array.from({ length: loads.samples }, (_, i) => [
    scheduler, loads.edges[i], loads.edges[i + 1], page.fabric.links[link].name, job < 0 ? "" : page.jobs[job].name, level,
    (loads.values[index * loads.samples + i] / 200).toFixed(3),
  ]));
  return csvText(["scheduler", "from s", "to s", "link", "job", "level", "load"], rows);
}
