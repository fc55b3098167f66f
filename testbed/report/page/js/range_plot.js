// Ranges on one axis, a row each: confidence intervals with their values, or distributions as boxes.

import { make } from "./dom.js";
import { csvText, CSV, downloadButtons } from "./download.js";
import { showPicture } from "./picture.js";
import { roundTicks } from "./svg.js";

const ROW = 24;
const TOP = 12;
const ROOM = 520;
const LETTER = 7; // px: the width of a letter at 12 px, generously

const isNumber = (value) => value !== null && value !== undefined && Number.isFinite(value);

function rangeLimits(rows, x) {
  const values = rows.flatMap((row) => [...(row.box ?? []), ...(row.points ?? []), row.mean, isNumber(row.half) ? row.mean - row.half : null, isNumber(row.half) ? row.mean + row.half : null]).filter(isNumber);
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (x.fromZero) [low, high] = [Math.min(0, low), Math.max(0, high)];
  const margin = (high - low || Math.abs(high) || 1) * 0.04;
  return [x.fromZero && low === 0 ? 0 : low - margin, high + margin];
}

function boxShapes(row, toX, y, ink) {
  const [least, low, lower, median, upper, high, most] = row.box.map(toX);
  const line = (from, to, width) => ["line", { x1: from, x2: to, y1: y, y2: y, stroke: row.color, "stroke-width": width }, "", row.hover];
  return [
    line(least, most, 1),
    line(low, high, 3),
    ["rect", { x: lower, y: y - 7, width: Math.max(1, upper - lower), height: 14, fill: row.color, "fill-opacity": 0.45, stroke: row.color }, "", row.hover],
    ["line", { x1: median, x2: median, y1: y - 8, y2: y + 8, stroke: ink.text, "stroke-width": 2 }, "", row.hover],
  ];
}

function intervalShapes(row, toX, y, ink) {
  const dots = row.points.map((value) => ["circle", { cx: toX(value), cy: y, r: 3.2, fill: "none", stroke: row.color }, "", row.hover]);
  const mean = ["rect", { x: toX(row.mean) - 2, y: y - 7, width: 4, height: 14, fill: ink.text }, "", row.hover];
  if (!isNumber(row.half)) return [...dots, mean];
  const [from, to] = [toX(row.mean - row.half), toX(row.mean + row.half)];
  const cap = (x) => ["line", { x1: x, x2: x, y1: y - 5, y2: y + 5, stroke: row.color, "stroke-width": 2 }];
  return [["line", { x1: from, x2: to, y1: y, y2: y, stroke: row.color, "stroke-width": 2 }, "", row.hover], cap(from), cap(to), ...dots, mean];
}

function rangeShapes(spec, left, ink) {
  const [low, high] = rangeLimits(spec.rows, spec.x);
  const toX = (value) => left + ((value - low) / (high - low)) * ROOM;
  const bottom = TOP + ROW * spec.rows.length;
  const grid = roundTicks(low, high).flatMap((tick) => [
    ["line", { x1: toX(tick), x2: toX(tick), y1: TOP, y2: bottom + 4, stroke: ink.grid }],
    ["text", { x: toX(tick), y: bottom + 17, "text-anchor": "middle", fill: ink.text }, tick],
  ]);
  const rows = spec.rows.flatMap((row, index) => {
    const y = TOP + ROW * (index + 0.5);
    const drawn = row.box ? boxShapes(row, toX, y, ink) : intervalShapes(row, toX, y, ink);
    return [["text", { x: left - 8, y: y + 4, "text-anchor": "end", fill: ink.text }, row.label], ...drawn];
  });
  return [...grid, ...rows, ["text", { x: left + ROOM, y: bottom + 33, "text-anchor": "end", fill: ink.text }, spec.x.label]];
}

/**
 * Draw ranges into `element`.
 * spec: {title, name, x: {label, fromZero}, rows}; a row is {label, color, hover} with `box` (the quantiles 0, 5, 25, 50, 75, 95
 * and 100 %), or with `mean`, `half` (half the interval's width, or null) and `points` (values). csv: {head, rows} to take away.
 */
export function rangePlot(element, spec, csv) {
  if (!spec.rows.length) {
    element.append(make("p", { class: "facts" }, "There is nothing to show."));
    return;
  }
  const left = 16 + LETTER * Math.max(...spec.rows.map((row) => row.label.length));
  const picture = {
    title: spec.title,
    name: spec.name,
    width: left + ROOM + 24,
    height: TOP + ROW * spec.rows.length + 42,
    shapes: (ink) => rangeShapes(spec, left, ink),
  };
  showPicture(element, picture, downloadButtons(["CSV", `${spec.name}.csv`, CSV, () => csvText(csv.head, csv.rows)]));
}
