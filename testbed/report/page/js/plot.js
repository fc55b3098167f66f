// Lines, steps, points and stacked areas over time or another quantity, with hover values; drawn by uPlot.

import { inkColors, onTheme } from "./colors.js";
import { fill, make } from "./dom.js";
import { csvText, CSV, downloadButtons, SVG } from "./download.js";
import { tickText } from "./format.js";
import { plotSvg } from "./plot_svg.js";

const shownNumber = (value, unit) => (value === null || value === undefined ? "-" : `${Number(value.toPrecision(4))}${unit ? ` ${unit}` : ""}`);

function uplotSeries(each, unit) {
  const points = each.kind === "points";
  return {
    label: each.label,
    stroke: each.color,
    width: points ? 0 : 1.5,
    fill: each.kind === "area" ? each.color : undefined,
    paths: points ? () => null : each.kind === "line" ? undefined : uPlot.paths.stepped({ align: -1 }),
    points: { show: points, size: each.size ?? 5, fill: each.hollow ? "transparent" : each.color, stroke: each.color },
    value: (plot, value, place, index) => shownNumber(index === null ? null : each.shown ? each.shown[index] : value, unit),
    spanGaps: true,
  };
}

/** Shaded spans under the lines, dashed thresholds over them. */
function decorations(spec) {
  const rows = (plot, draw) => {
    plot.ctx.save();
    plot.ctx.beginPath();
    plot.ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    plot.ctx.clip();
    draw(plot.ctx);
    plot.ctx.restore();
  };
  return {
    drawClear: (plot) => rows(plot, (pen) => {
      for (const span of spec.spans ?? []) {
        const [left, right] = [plot.valToPos(span.from, "x", true), plot.valToPos(span.to, "x", true)];
        pen.globalAlpha = 0.22;
        pen.fillStyle = span.color;
        pen.fillRect(left, plot.bbox.top, Math.max(2, right - left), plot.bbox.height);
      }
    }),
    draw: (plot) => rows(plot, (pen) => {
      for (const limit of spec.thresholds ?? []) {
        const y = plot.valToPos(limit.value, "y", true);
        pen.strokeStyle = inkColors().text;
        pen.setLineDash([5, 4]);
        pen.beginPath();
        pen.moveTo(plot.bbox.left, y);
        pen.lineTo(plot.bbox.left + plot.bbox.width, y);
        pen.stroke();
      }
    }),
  };
}

/** Everything of uPlot that does not depend on what is drawn. */
export function plotFrame(spec, width, height, series, hooks) {
  const ink = inkColors();
  const axis = { values: (plot, ticks) => ticks.map(tickText), stroke: ink.text, grid: { stroke: ink.grid, width: 1 }, ticks: { stroke: ink.grid, width: 1 } };
  const small = width < 500;
  return {
    width,
    height,
    series: [{ label: spec.x.label, value: (plot, value) => shownNumber(value, spec.x.unit) }, ...series],
    scales: {
      x: { time: false, range: spec.window ? () => [spec.window.from, spec.window.to] : spec.x.range },
      y: spec.y.scale ?? { range: (plot, low, high) => [spec.y.min ?? low, spec.y.max ?? (Math.max(high, spec.y.least ?? high) * 1.05 || 1)] },
    },
    axes: [
      { ...axis, label: `${spec.x.label}${spec.x.unit ? `, ${spec.x.unit}` : ""}`, labelSize: 18, size: 34 },
      { ...axis, size: spec.window ? 84 : small ? 44 : 60, ...spec.y.axis },
    ],
    cursor: { sync: spec.sync ? { key: spec.sync } : undefined, drag: { x: Boolean(spec.window), y: false, setScale: false } },
    select: { show: Boolean(spec.window) },
    legend: { show: spec.legend ?? true, live: true },
    hooks: {
      ...hooks,
      setSelect: [(plot) => {
        if (!spec.window || plot.select.width < 4) return;
        spec.window.set(plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x"));
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      }],
    },
  };
}

/** Draw again when the box, the theme or the shared window changes; `build(width)` returns a uPlot. */
export function keepDrawn(box, spec, build) {
  let [plot, width] = [null, 0];
  const redraw = () => {
    width = box.clientWidth;
    if (!width) return;
    plot?.destroy();
    plot = build(width);
  };
  redraw();
  onTheme(redraw);
  new ResizeObserver(() => { if (box.clientWidth !== width) redraw(); }).observe(box);
  spec.window?.onChange((from, to) => plot?.setScale("x", { min: from, max: to }));
  return { redraw, plot: () => plot };
}

/**
 * Draw a plot into `element`. spec: {title, name (of files), note, height, sync, window (TimeWindow),
 * x: {label, unit, values}, y: {label, unit, min, max, least}, thresholds: [{value, label}], spans: [{from, to, color}],
 * series: [{label, color, kind: line|steps|area|points, values, shown (values to tell), x (its own x values)}]}.
 */
export function linePlot(element, spec) {
  const own = spec.series.some((each) => each.x);
  const data = own
    ? uPlot.join(spec.series.map((each) => [each.x ?? spec.x.values, each.values]))
    : [spec.x.values, ...spec.series.map((each) => each.values)];
  const box = make("div", { class: "plot", role: "img", "aria-label": `${spec.title}; the values are in the CSV file` });
  const head = [spec.x, ...spec.series].map((each, index) => (index ? each.label : `${each.label} ${each.unit ?? ""}`.trim()));
  const csv = () => csvText(head, data[0].map((x, row) => [x, ...spec.series.map((each, place) => (each.shown && !own ? each.shown : data[place + 1])[row])]));
  const files = downloadButtons(["CSV", `${spec.name}.csv`, CSV, csv], ["SVG", `${spec.name}.svg`, SVG, () => plotSvg(spec, data)]);
  fill(element,
    make("div", { class: "caption" }, make("h4", {}, spec.title, spec.y.unit ? make("span", { class: "unit" }, ` ${spec.y.label}, ${spec.y.unit}`) : null), files),
    spec.note ? make("p", { class: "facts" }, spec.note) : null,
    box,
  );
  const { drawClear, draw } = decorations(spec);
  return keepDrawn(box, spec, (width) => new uPlot(
    plotFrame(spec, width, spec.height ?? 150, spec.series.map((each) => uplotSeries(each, spec.y.unit)), { drawClear: [drawClear], draw: [draw] }),
    data,
    box,
  ));
}
