// The report of a run: reads the document and draws its sections.

import { readDocument } from "./codec.js";
import { decisionsSection } from "./decisions_section.js";
import { make, scrollBox, section } from "./dom.js";
import { evidenceSection } from "./evidence_section.js";
import { fabricSection } from "./fabric_section.js";
import { idleSection } from "./idle_section.js";
import { RunLoads } from "./loads.js";
import { sortableTable } from "./table.js";
import { timeSection } from "./time_section.js";
import { TimeWindow } from "./time_window.js";
import { Timeline } from "./timeline_data.js";

const ITERATIONS_SHOWN = 5;

function notices(main, page) {
  if (page.doubts.length) {
    main.append(make("div", { class: "doubt" }, make("strong", {}, "Not every run here can be believed."), make("ul", {}, page.doubts.map((line) => make("li", {}, line)))));
  }
  if (page.changed.length) main.append(make("p", { class: "doubt" }, `Changed since the run ended: ${page.changed.join(", ")}.`));
  for (const line of [...page.schedulers_behind.map((each) => `Scheduler ${each}.`), ...page.left_out, ...page.refusals]) main.append(make("p", { class: "facts" }, line));
}

function facts(main, page) {
  const scaled = page.engine === "flow" ? "" : ` Bandwidth was scaled by ${Number(page.scale.bandwidth.toPrecision(6))} and time by ${Number(page.scale.time.toPrecision(6))}.`;
  const engine = page.engine === "flow" ? "Computed by the flow engine: rates, no packets." : `Packets, engine ${page.engine}.${scaled}`;
  main.append(make("p", { class: "facts" }, `${page.fabric.description || page.fabric.name}. Seed ${page.seed}. ${engine} All numbers are in the scenario's own units.`));
}

function tablesSection(main, page) {
  const part = section("results", "Results");
  for (const table of page.tables) {
    const box = make("div");
    part.append(box);
    sortableTable(box, table.columns, table.rows, { title: table.title, name: table.id });
    if (table.note) part.append(make("p", { class: "facts" }, table.note));
  }
  main.append(part);
}

function manifestSection(main, page) {
  if (!page.manifest) return;
  const part = section("manifest", "Manifest");
  part.append(make("details", {}, make("summary", {}, "versions, kernel, settings"), scrollBox("manifest", make("pre", {}, JSON.stringify(page.manifest, null, 1)))));
  main.append(part);
}

/** Some iterations of the slowest job from the start of the measured window; the whole run under a manager. */
function firstView(page, timelines) {
  const end = Math.max(...page.runs.map((run) => run.duration_s), 1e-6);
  if (page.managed) return new TimeWindow(0, end, end);
  const start = Math.min(...page.runs.map((run) => Math.max(0, ...run.windows.map((window) => window[1]))), end);
  let longest = 0;
  for (const timeline of timelines) timeline.start.forEach((begin, i) => { longest = Math.max(longest, timeline.end[i] - begin); });
  return new TimeWindow(start, Math.min(end, start + ITERATIONS_SHOWN * (longest || 1)), end);
}

function drawRunPage() {
  const page = readDocument();
  const main = document.getElementById("main");
  main.replaceChildren();
  notices(main, page);
  facts(main, page);
  const allLoads = page.runs.map((run) => new RunLoads(run.loads, page.fabric.links.length));
  const timelines = page.runs.map((run) => new Timeline(run.timeline));
  const window = firstView(page, timelines);
  tablesSection(main, page);
  const fabric = fabricSection(main, page, allLoads, timelines, window);
  idleSection(main, page);
  timeSection(main, page, allLoads, timelines, window);
  evidenceSection(main, page, window);
  decisionsSection(main, page);
  manifestSection(main, page);
  return fabric;
}

drawRunPage();
document.documentElement.dataset.drawn = "yes";
