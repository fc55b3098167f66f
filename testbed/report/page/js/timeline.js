// A row per GPU over time: what it does, or under a cluster manager which job holds it.

import { CAUSES, inkColors, jobColor } from "./colors.js";
import { fill, make } from "./dom.js";
import { csvText, CSV, downloadButtons, SVG } from "./download.js";
import { secondsText } from "./format.js";
import { keepDrawn, plotFrame } from "./plot.js";
import { svgAxes, svgFile, svgTag } from "./svg.js";

/** Over what a GPU did while a part of the network did not work. */
export const FAILED = "rgba(128, 128, 128, 0.35)";
const CAUSE_COLOR = Object.fromEntries(CAUSES.map((cause) => [cause.key, cause.color]));

/** [[middle row, name]] of each stretch of rows of one job; hosts where jobs come and go. */
export function rowGroups(page) {
  const { job, gpu } = page.gpu_rows;
  const groups = [];
  job.forEach((each, row) => {
    const name = page.managed ? gpu[row].replace(/g\d+$/, "") : page.jobs[each].name;
    const last = groups.at(-1);
    if (last && last.name === name) last.to = row + 1;
    else groups.push({ name, from: row, to: row + 1 });
  });
  return groups;
}

/** [color, [row, start, length, ...]] of what is drawn. */
function layers(page, timeline, window, shown) {
  if (page.managed) return [...timeline.holds(shown)].map(([job, list]) => [jobColor(job), list]);
  return Object.entries(timeline.slices(window.from, window.to, shown)).map(([cause, list]) => [CAUSE_COLOR[cause], list]);
}

function paintRows(plot, page, timeline, window) {
  const pen = plot.ctx;
  const { left, top, width, height } = plot.bbox;
  const pitch = height / page.gpu_rows.gpu.length;
  const seen = new Map();
  // Where several rows fall on one line of pixels only the first is drawn.
  const shown = (row) => {
    const line = Math.floor(row * pitch);
    if (!seen.has(line)) seen.set(line, row);
    return pitch >= 1 || seen.get(line) === row;
  };
  const tall = Math.max(1, pitch >= 4 ? pitch * 0.88 : pitch);
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  const scale = width / (window.to - window.from);
  for (const [color, list] of layers(page, timeline, window, shown)) {
    pen.fillStyle = color;
    pen.beginPath();
    for (let i = 0; i < list.length; i += 3) {
      pen.rect(left + (list[i + 1] - window.from) * scale, top + Math.floor(list[i] * pitch), list[i + 2] * scale, tall);
    }
    pen.fill();
  }
  pen.restore();
}

/** Bands over the time in which a part did not work; failures: [[part, from, until]]. */
function paintFailures(plot, failures, window) {
  const pen = plot.ctx;
  const { left, top, width, height } = plot.bbox;
  const scale = width / (window.to - window.from);
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.textAlign = "left";
  pen.font = `${11 * devicePixelRatio}px sans-serif`;
  failures.forEach(([part, from, until], place) => {
    const begin = left + (from - window.from) * scale;
    pen.fillStyle = FAILED;
    pen.fillRect(begin, top, (until - from) * scale, height);
    pen.fillStyle = inkColors().text;
    pen.fillText(part, begin + 3 * devicePixelRatio, top + (12 + 12 * (place % 3)) * devicePixelRatio);
  });
  pen.restore();
}

function failureSvg(failures, window, box, scale) {
  return failures.filter(([, from, until]) => until > window.from && from < window.to).flatMap(([part, from, until], place) => {
    const [begin, end] = [scale.toX(Math.max(from, window.from)), scale.toX(Math.min(until, window.to))];
    return [
      svgTag("rect", { x: begin.toFixed(2), y: box.top, width: (end - begin).toFixed(2), height: box.height, fill: "#808080", "fill-opacity": 0.35 }),
      svgTag("text", { x: (begin + 3).toFixed(2), y: box.top + 11 + 11 * (place % 3), "font-size": 10 }, part),
    ];
  });
}

function rowSvg(page, timeline, window, title, failures) {
  const groups = rowGroups(page);
  const rows = page.gpu_rows.gpu.length;
  const box = { left: 110, top: 30, width: 820, height: Math.max(120, Math.min(900, rows * 4)) };
  const ticks = groups.map((group) => [rows - (group.from + group.to) / 2, group.name]);
  const scale = svgAxes(box, { min: window.from, max: window.to, label: "time, s" }, { min: 0, max: rows, label: title, ticks });
  const pitch = box.height / rows;
  const bars = layers(page, timeline, window, () => true).flatMap(([fillColor, list]) => {
    const parts = [];
    for (let i = 0; i < list.length; i += 3) {
      const [from, to] = [Math.max(window.from, list[i + 1]), Math.min(window.to, list[i + 1] + list[i + 2])];
      if (to > from) parts.push(`M${scale.toX(from).toFixed(2)} ${(box.top + list[i] * pitch).toFixed(2)}H${scale.toX(to).toFixed(2)}v${(pitch * 0.9).toFixed(2)}H${scale.toX(from).toFixed(2)}z`);
    }
    return [svgTag("path", { d: parts.join(""), fill: fillColor })];
  });
  return svgFile(950, box.height + 80, [...bars, ...failureSvg(failures, window, box, scale), ...scale.parts]);
}

function rowCsv(page, timeline) {
  const rows = timeline.lanes.flatMap((lane) => Array.from({ length: lane.last - lane.first }, (_, place) => {
    const i = lane.first + place;
    const times = ["start", "compute", "straggler", "exposed", "end"].map((name) => timeline[name][i]);
    return [page.jobs[lane.job].name, page.gpu_rows.gpu[lane.row], timeline.iteration[i], ...times];
  }));
  return csvText(["job", "gpu", "iteration", "start s", "compute s", "straggler s", "exposed s", "end s"], rows);
}

function described(page, found, timeline) {
  if (!found) return "";
  const { lane, index } = found;
  const parts = CAUSES.filter((cause) => timeline[cause.key]).map((cause) => `${cause.word} ${secondsText(timeline[cause.key][index], 3)}`);
  return `${page.gpu_rows.gpu[lane.row]}, ${page.jobs[lane.job].name}, iteration ${timeline.iteration[index]}: ${parts.join(", ")}`;
}

/** Draw the GPUs of one run into `element`; spec: {title, name, window, sync, failures}. */
export function gpuTimeline(element, page, timeline, spec) {
  const rows = page.gpu_rows.gpu.length;
  const groups = rowGroups(page);
  const height = Math.max(110, Math.min(420, rows * 2.2)) + 40;
  const told = make("p", { class: "told" });
  const box = make("div", { class: "plot", role: "img", "aria-label": `${spec.title}; the values are in the CSV file` });
  fill(element,
    make("div", { class: "caption" }, make("h4", {}, spec.title), downloadButtons(
      ["CSV", `${spec.name}.csv`, CSV, () => rowCsv(page, timeline)],
      ["SVG", `${spec.name}.svg`, SVG, () => rowSvg(page, timeline, spec.window, spec.title, spec.failures)],
    )),
    box, told);
  const tell = (plot) => {
    if (plot.cursor.left < 0) { told.textContent = ""; return; }
    const row = Math.floor(plot.posToVal(plot.cursor.top, "y"));
    told.textContent = described(page, timeline.find(row, plot.posToVal(plot.cursor.left, "x")), timeline);
  };
  const frame = {
    x: { label: "time", unit: "s" },
    y: {
      scale: { range: () => [0, rows], dir: -1 },
      axis: {
        splits: () => groups.map((group) => (group.from + group.to) / 2),
        values: (plot, ticks) => visibleNames(groups, ticks, plot.bbox.height / rows / devicePixelRatio),
        grid: { show: false },
        ticks: { show: false },
      },
    },
    window: spec.window,
    sync: spec.sync,
    legend: false,
  };
  const series = [{ label: "GPUs", stroke: inkColors().line, paths: () => null, points: { show: false } }];
  return keepDrawn(box, frame, (width) => {
    const options = plotFrame(frame, width, height, series, {
      draw: [(plot) => { paintRows(plot, page, timeline, spec.window); paintFailures(plot, spec.failures, spec.window); }],
      setCursor: [tell],
    });
    return new uPlot(options, [[0, spec.window.end], [0, 0]], box);
  });
}

/** Names of groups of rows, without those that would lie on the one before. */
function visibleNames(groups, ticks, pitch) {
  let below = -Infinity;
  return ticks.map((tick, index) => {
    const y = tick * pitch;
    if (y - below < 12) return "";
    below = y;
    const { name } = groups[index];
    return name.length > 12 ? `${name.slice(0, 11)}\u2026` : name;
  });
}
