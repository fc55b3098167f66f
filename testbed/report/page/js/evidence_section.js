// Whether the runs can be believed: every piece of evidence with its threshold, and over time.

import { make, section } from "./dom.js";
import { secondsCell } from "./format.js";
import { linePlot } from "./plot.js";
import { sortableTable } from "./table.js";
import { windowControls } from "./window_controls.js";
import { TimeWindow } from "./time_window.js";

const BLUE = "#0072b2";
const ORANGE = "#d55e00";
const GREEN = "#009e73";
const GREY = "#8f8f8f";

const evidenceNumber = (value) => Number(value.toPrecision(3));

function evidenceTable(part, page) {
  const columns = [{ title: "evidence", text: true }, ...page.runs.map((run) => ({ title: run.title })),
    { title: "threshold" }, { title: "unit", text: true }, { title: "what it means", text: true }];
  const rows = page.evidence_items.map((item) => [
    item.name,
    ...page.runs.map((run) => {
      const value = run.fidelity[item.key];
      return value === undefined || value === null ? "-" : [String(evidenceNumber(value * item.factor)), value];
    }),
    `${item.at_least ? "\u2265" : "\u2264"} ${item.threshold}`, item.unit, item.meaning,
  ]);
  const box = make("div", { class: "wrapping" });
  part.append(box);
  sortableTable(box, columns, rows, { title: "Evidence", name: "evidence" });
}

function findingsTable(part, page) {
  const rows = page.runs.flatMap((run) => (run.fidelity.findings ?? []).map((finding) => [
    run.title, finding.kind, [secondsCell(finding.from_s), finding.from_s], [secondsCell(finding.to_s), finding.to_s], finding.what,
    finding.discarded ? "no: iterations left out" : "yes",
  ]));
  if (!rows.length) return;
  const box = make("div", { class: "wrapping" });
  part.append(box);
  sortableTable(box, [{ title: "scheduler", text: true }, { title: "kind", text: true }, { title: "from s", meaning: "second of the run" }, { title: "to s", meaning: "second of the run" },
    { title: "what", text: true }, { title: "counts", text: true, meaning: "whether the verdict counts it" }], rows, { title: "Findings", name: "findings" });
}

function limitOf(page, key) {
  return page.evidence_items.find((item) => item.key === key).threshold;
}

function ratePlot(element, page, run, evidence) {
  const pick = (judged) => evidence.rates.filter((row) => row.judged === judged);
  const limit = limitOf(page, "link_rate_error");
  const series = [[true, BLUE, "judged"], [false, GREY, `seen busy for less than ${evidence.min_busy_s} s, not judged`]].map(([judged, color, label]) => ({
    label, color, kind: "points", size: 6, hollow: !judged, x: pick(judged).map((row) => row.busy_s), values: pick(judged).map((row) => row.error) }));
  linePlot(element, {
    title: `${run.title}: rate error of each link:`, name: `rate-errors-${run.scheduler}`, height: 150,
    note: "A point per link: how far it was from the rate it was set to while busy, beyond what the size of packets explains. This is the value that the verdict judges.",
    x: { label: "seen busy for", unit: "s", values: [] },
    y: { label: "error", unit: "%", min: -1.6 * limit, max: Math.max(1.6 * limit, ...evidence.rates.map((row) => Math.abs(row.error))) },
    thresholds: [{ value: -limit }, { value: limit }], series: series.filter((each) => each.x.length),
  });
}

function evidencePlots(part, page, run, window) {
  const { evidence } = run;
  const spans = (run.fidelity.findings ?? []).map((finding) => ({ from: finding.from_s, to: Math.max(finding.to_s, finding.from_s + 0.02), color: finding.discarded ? GREY : ORANGE }));
  const shared = { spans, window, sync: `evidence ${run.scheduler}` };
  const time = (values) => ({ label: "time", unit: "s", values });
  const steps = (rows) => rows.map(([label, values, color]) => ({ label, values, color, kind: "steps" }));
  const boxes = Array.from({ length: 4 }, () => make("div", { class: "strip" }));
  part.append(make("h3", {}, `${run.title}: evidence over time`),
    make("p", { class: "facts" }, "Dashed: threshold. Shaded orange: a finding; grey: one that cost only the iterations it touched, which are left out."), windowControls(window), ...boxes);
  const { cpu, waiting } = evidence;
  linePlot(boxes[0], { ...shared, title: "CPU:", name: `cpu-${run.scheduler}`, x: time(cpu.time), y: { label: "share of all cores", unit: "%", min: 0, max: 100 },
    thresholds: [{ value: limitOf(page, "min_idle_cpu") }],
    series: steps([["idle", cpu.idle, BLUE], ["taken by other guests", cpu.stolen, ORANGE], ["other processes", cpu.other, GREEN]]) });
  linePlot(boxes[1], { ...shared, title: "waiting for a CPU:", name: `waiting-${run.scheduler}`, x: time(waiting.time), y: { label: "share of a second", unit: "%", min: 0, least: 30 },
    thresholds: [{ value: limitOf(page, "max_run_delay") }],
    series: steps([["switches", waiting.switches, BLUE], ["controller", waiting.controller, GREEN], ["slowest worker", waiting.worker, ORANGE], ["held back by a quota", waiting.quota, GREY]]) });
  linePlot(boxes[2], { ...shared, title: "compute pauses ended late:", name: `timers-${run.scheduler}`, x: time([]), y: { label: "late by", unit: "ms", min: 0, least: 24 },
    thresholds: [{ value: limitOf(page, "max_timer_lateness_s") }],
    series: [
      { label: "compute pauses", color: BLUE, kind: "points", size: 4, x: evidence.timers.map((row) => row[0]), values: evidence.timers.map((row) => row[1]) },
      { label: "standstills", color: ORANGE, kind: "points", size: 8, x: evidence.standstills.map((row) => row[0]), values: evidence.standstills.map((row) => row[1]) },
    ].filter((each) => each.x.length) });
  ratePlot(boxes[3], page, run, evidence);
}

/** Verdicts, evidence and findings of every run. */
export function evidenceSection(main, page) {
  const part = section("evidence", "Can it be believed?", page.runs.every((run) => run.engine === "flow")
    ? "The flow engine computes rates; nothing on the machine can disturb it, so its runs are always ok."
    : "The verdict of a run is ok when no evidence is beyond its threshold, apart from iterations that are left out.");
  part.append(make("ul", { class: "verdicts" }, page.runs.map((run) => make("li", {}, `${run.scheduler}: `, make("span", { class: `verdict-${run.verdict}` }, run.verdict),
    run.fidelity.reasons.length ? `: ${run.fidelity.reasons.join("; ")}` : ""))));
  main.append(part);
  evidenceTable(part, page);
  findingsTable(part, page);
  for (const run of page.runs) if (run.evidence) evidencePlots(part, page, run, new TimeWindow(0, run.duration_s, run.duration_s));
}
