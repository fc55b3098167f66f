// The page of `run --watch`: the fabric as it is now, its busiest links, and how far the jobs are.

import { readDocument } from "./codec.js";
import { button, fill, make, scrollBox, section, select } from "./dom.js";
import { drawFabric, loadLegend } from "./fabric.js";
import { countText, percentText, rateText, secondsText } from "./format.js";
import { LiveRun } from "./live_run.js";
import { LINK_KINDS } from "./loads.js";

const BUSIEST = 8;

const shareText = (share) => (share === null ? "-" : percentText(share));
const levelText = (job) => (job.level === null ? "-" : String(job.level));
const iterationsText = (job) => (job.state === "waiting" ? "waiting" : `${job.iterations} of ${job.planned}${job.state === "ended" ? ", ended" : ""}`);

const WORDS = ["job", "jobs", "link"];

/** A table that is drawn again with every sample; `rows` are arrays of texts or elements, the first cell names the row. */
function plainTable(label, heads, rows) {
  const kind = (place) => (WORDS.includes(heads[place]) ? "text" : null);
  const style = (place) => (heads[place] === "jobs" ? "white-space: normal" : null);
  return scrollBox(label, make("table", {},
    make("thead", {}, make("tr", {}, heads.map((head, place) => make("th", { scope: "col", class: kind(place), style: "padding: .22rem .4rem" }, head)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, place) => make("td", { class: kind(place), style: style(place) }, cell)))))));
}

function headline(run, page) {
  if (run.ended) return run.ended.report === null ? "The run ended without a result" : "The run has ended";
  if (!run.scheduler) return "Waiting for the run";
  if (!run.sample.jobs.length) return `${run.scheduler}: ${run.phase || "setting up"}`;
  const place = page.schedulers.indexOf(run.scheduler) + 1;
  const which = place && page.schedulers.length > 1 ? ` (${place} of ${countText(page.schedulers.length, "scheduler")})` : "";
  return `${run.scheduler}${which}, ${secondsText(run.sample.time_s, 0)}: GPUs ${run.sample.utilization === null ? "warming up" : `${percentText(run.sample.utilization)} busy`}`;
}

/** Where the report is, or what is wrong with the connection. */
function notice(run, lost) {
  if (run.ended && run.ended.report !== null) return make("p", {}, "Its report is ", make("code", {}, run.ended.report), ".");
  if (run.ended) return make("p", {}, "The command line says why.");
  return lost ? make("p", {}, "The connection to the run is lost: the command has ended, or does not answer.") : null;
}

function livePage() {
  const page = readDocument();
  const run = new LiveRun(page.fabric);
  const state = { link: -1, job: null, lost: false };
  const [picture, panel, jobs, links, said] = ["fabric", "panel", "jobs", "links", "doubt"].map((name) => make("div", { class: name }));
  const chooseLink = select("link", [[-1, "none"], ...page.fabric.links.map((link, index) => [index, link.name])], -1, (value) => choose(Number(value), null));
  const part = section("live", "The fabric now",
    "Hosts at the bottom, ToRs above them, then aggregation and core. Each cable is two lines, one per direction, coloured by its load since the last sample. Choose a link or a job, or click a link.");
  part.append(make("div", { class: "row" }, chooseLink.element), make("div", { class: "columns" }, make("div", { class: "wide" }, picture, loadLegend()), panel));
  document.getElementById("main").append(said, part, make("section", {}, make("h2", {}, "Jobs"), jobs), make("section", {}, make("h2", {}, "Busiest links"), links));
  const drawing = drawFabric(picture, page.fabric, { onLink: (link) => choose(link, null) });

  function choose(link, job) {
    [state.link, state.job] = [link, job];
    chooseLink.box.value = link;
    drawing.choose(link);
    highlight();
    details();
  }

  function highlight() {
    drawing.highlight(state.job === null ? null : new Set(run.routes[state.job] ?? []));
  }

  function details() {
    if (state.link >= 0) linkDetails(state.link);
    else if (state.job !== null) jobDetails(state.job);
    else fill(panel, make("p", { class: "facts" }, "No link or job is chosen."));
  }

  function jobDetails(job) {
    const count = countText((run.routes[job] ?? []).length, "link");
    redraw(panel, make("h3", {}, job), make("p", { class: "facts" }, `Its paths are highlighted: ${count}.`),
      chooser("show all links", "all", () => choose(-1, null)));
  }

  function linkDetails(link) {
    const about = page.fabric.links[link];
    const levels = (run.levels.get(link) ?? []).map(({ level, share }) => [`level ${level}`, percentText(share)]);
    const names = run.jobsOn(link).map((job) => `${job.name} (level ${levelText(job)})`);
    fill(panel,
      make("h3", {}, about.name),
      make("p", { class: "facts" }, `Link of ${rateText(about.rate)} between ${LINK_KINDS[about.kind] ?? about.kind}. Load now: ${percentText(run.loads[link])}.`),
      make("p", {}, names.length ? `Jobs whose paths cross it: ${names.join(", ")}.` : "No job's path crosses it."),
      levels.length ? plainTable("load by level", ["level", "load"], levels) : null);
  }

  /** A button that keeps the focus where it was when its table is drawn again. */
  function chooser(text, name, action) {
    return button(text, action, { "data-name": name });
  }

  function redraw(element, ...children) {
    const focused = element.contains(document.activeElement) ? document.activeElement.dataset.name : null;
    fill(element, ...children);
    if (focused !== null) [...element.querySelectorAll("button")].find((each) => each.dataset.name === focused)?.focus();
  }

  function draw() {
    if (document.hidden) return;
    document.querySelector(".headline").textContent = headline(run, page);
    const words = notice(run, state.lost);
    said.hidden = words === null;
    fill(said, words);
    drawing.setLoads(run.loads);
    details();
    redraw(jobs, plainTable("jobs", ["job", "GPUs", "level", "iterations", "busy"], run.sample.jobs.map((job) => [
      chooser(job.name, job.name, () => choose(-1, job.name)), String(job.gpus), levelText(job), iterationsText(job), shareText(job.utilization)])));
    redraw(links, plainTable("busiest links", ["link", "load", "levels", "jobs"], run.busiest(BUSIEST).map((link) => [
      chooser(page.fabric.links[link].name, String(link), () => choose(link, null)), percentText(run.loads[link]),
      run.levels.get(link).map(({ level }) => level).join(", "), run.jobsOn(link).map((job) => job.name).join(", ")])));
  }

  function listen() {
    const events = new EventSource(`${location.pathname.replace(/\/$/, "")}/events`);
    const on = (name, action) => events.addEventListener(name, (event) => { action(JSON.parse(event.data)); state.lost = false; draw(); });
    on("run", (value) => { run.begin(value); choose(state.link, null); });
    on("phase", (value) => { run.phase = value.phase; });
    on("routes", (value) => { run.routes = value; highlight(); });
    on("sample", (value) => run.take(value));
    on("ended", (value) => { run.ended = value; });
    events.onerror = () => {
      if (run.ended) events.close();
      state.lost = true;
      draw();
    };
  }

  document.addEventListener("visibilitychange", draw);
  draw();
  listen();
  document.documentElement.dataset.drawn = "";
}

livePage();
