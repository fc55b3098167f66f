// Plots as SVG files, drawn from the same values as the canvas.

import { svgAxes, svgFile, svgTag } from "./svg.js";

function svgPath(xs, ys, { toX, toY }, steps) {
  let path = "";
  let last = null;
  xs.forEach((x, row) => {
    const y = ys[row];
    if (y === null || y === undefined) return;
    if (steps && last !== null) path += `H${toX(last).toFixed(1)}V${toY(y).toFixed(1)}`;
    path += `${path ? "L" : "M"}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`;
    last = x;
  });
  return path;
}

function svgSeries(each, xs, ys, scale, y) {
  if (each.kind === "points") {
    return xs.map((x, row) => (ys[row] === null || ys[row] === undefined ? "" : svgTag("circle", {
      cx: scale.toX(x), cy: scale.toY(ys[row]), r: 2, fill: each.hollow ? "none" : each.color, stroke: each.color })));
  }
  const path = svgPath(xs, ys, scale, each.kind !== "line");
  if (!path) return [];
  if (each.kind !== "area") return [svgTag("path", { d: path, fill: "none", stroke: each.color, "stroke-width": 1.5 })];
  const ground = scale.toY(y.min).toFixed(1);
  return [svgTag("path", { d: `${path}V${ground}H${scale.toX(xs[0]).toFixed(1)}Z`, fill: each.color })];
}

/** The file of a plot; spec as of linePlot, data as of uPlot: x values, then the values of each series. */
export function plotSvg(spec, data) {
  const box = { left: 60, top: 40, width: 820, height: 240 };
  const shown = data[0].map((x, row) => row).filter((row) => !spec.window || (data[0][row] >= spec.window.from && data[0][row] <= spec.window.to));
  const xs = shown.map((row) => data[0][row]);
  const values = data.slice(1).flatMap((column) => shown.map((row) => column[row])).filter((value) => typeof value === "number");
  const limits = (spec.thresholds ?? []).map((limit) => limit.value);
  const y = {
    min: spec.y.min ?? values.reduce((a, b) => Math.min(a, b), limits[0] ?? Infinity),
    max: spec.y.max ?? values.reduce((a, b) => Math.max(a, b), limits.at(-1) ?? 0) * 1.05,
    label: `${spec.title}${spec.y.unit ? `: ${spec.y.label}, ${spec.y.unit}` : ""}`,
  };
  const x = { min: xs[0] ?? 0, max: xs.at(-1) ?? 1, label: `${spec.x.label}${spec.x.unit ? `, ${spec.x.unit}` : ""}` };
  const scale = svgAxes(box, x, y);
  const drawn = spec.series.flatMap((each, place) => svgSeries(each, xs, shown.map((row) => data[place + 1][row]), scale, y));
  const dashed = limits.map((value) => svgTag("line", { x1: box.left, x2: box.left + box.width, y1: scale.toY(value), y2: scale.toY(value),
    stroke: "#1c1c1c", "stroke-dasharray": "5 4" }));
  const keys = spec.series.flatMap((each, place) => [
    svgTag("rect", { x: 60 + 150 * (place % 5), y: 320 + 16 * Math.floor(place / 5), width: 10, height: 10, fill: each.color }),
    svgTag("text", { x: 75 + 150 * (place % 5), y: 329 + 16 * Math.floor(place / 5) }, each.label),
  ]);
  return svgFile(900, 340 + 16 * Math.ceil(spec.series.length / 5), [...drawn, ...scale.parts, ...dashed, ...keys]);
}
