// The sections of the comparison page.

import { runColor } from "./colors.js";
import { fill, make, section, select } from "./dom.js";
import { groupAxes, groupHover, groupLabel, groupNumbers, METRICS, shownHalf, shownMean } from "./groups.js";
import { heatMap } from "./heat_map.js";
import { rangePlot } from "./range_plot.js";
import { sortableTable } from "./table.js";

const MOST_DRAWN = 60;
const MISSING_CELL = "-";

const schedulersOf = (page) => [...new Set(page.runs.map((run) => run.scheduler))];
const colorOf = (page, scheduler) => runColor(schedulersOf(page).indexOf(scheduler));
const withUnit = (metric) => `${metric.word}, ${metric.unit}`;
const metricOptions = METRICS.map((metric, index) => [index, withUnit(metric)]);

const numberCell = (value, shown) => (value === null ? MISSING_CELL : [shown, value]);

/** A row per run and scheduler, with a link to the run's report. */
export function runsSection(main, page) {
  const part = section("runs", "Runs", page.row_count > page.runs.length ? `The first ${page.runs.length} of ${page.row_count} rows.` : "");
  const columns = [
    { title: "run", text: true },
    ...page.keys.map((title) => ({ title, text: true })),
    { title: "scenario", text: true },
    { title: "engine", text: true },
    { title: "scheduler", text: true },
    { title: "seed" },
    ...METRICS.map((metric) => ({ title: withUnit(metric), meaning: metric.meaning })),
    { title: "verdict", meaning: "can the run be believed", text: true },
  ];
  const rows = page.runs.map((run) => [
    { text: run.name, href: run.link },
    ...run.settings,
    run.scenario,
    run.engine,
    run.scheduler,
    [String(run.seed), run.seed],
    ...METRICS.map((metric) => numberCell(run[metric.key], run.shown[metric.key])),
    run.verdict,
  ]);
  sortableTable(part, columns, rows, { title: "runs", name: "runs", search: rows.length > 10 });
  main.append(part);
}

/** Means over seeds with their confidence intervals, as a picture and a table. */
export function seedsSection(main, page) {
  const note = "Circles are runs, the bar is their mean, the line its 95 % confidence interval over the seeds (Student's t). Runs with the same seed count as one. A gain is that of each run over the first scheduler of the same run; in parentheses where it is not larger than its spread (the largest difference between two seeds), so that it proves nothing.";
  const part = section("seeds", "Means over seeds", note);
  const room = make("div");
  const draw = (index) => {
    const metric = METRICS[index];
    const shown = page.groups.map((group) => [group, groupNumbers(group, metric)]).filter(([, numbers]) => numbers);
    const rows = shown.slice(0, MOST_DRAWN).map(([group, numbers]) => ({
      label: groupLabel(page, group),
      color: colorOf(page, group.scheduler),
      mean: numbers.mean,
      half: numbers.half,
      points: numbers.values.map(([, value]) => value),
      hover: groupHover(groupLabel(page, group), numbers, metric),
    }));
    const csv = shown.flatMap(([group, numbers]) => numbers.values.map(([seed, value]) => [groupLabel(page, group), seed, value]));
    fill(room);
    rangePlot(room, { title: `${metric.word} by seed`, name: `seeds-${metric.key}`, x: { label: withUnit(metric) }, rows }, { head: ["runs", "seed", withUnit(metric)], rows: csv });
    if (shown.length > MOST_DRAWN) room.append(make("p", { class: "facts" }, `The first ${MOST_DRAWN} of ${shown.length}; the table has all.`));
  };
  part.append(make("div", { class: "row" }, select("show", metricOptions, 0, draw).element), room);
  draw(0);
  groupTable(part, page);
  main.append(part);
}

function groupTable(part, page) {
  const axes = groupAxes(page);
  const columns = [
    ...(axes.length ? axes : [{ label: "scheduler", of: (group) => group.scheduler }]).map((axis) => ({ title: axis.label, text: true, of: axis.of })),
    { title: "seeds", meaning: "seeds that the mean is over" },
    ...METRICS.flatMap((metric) => [{ title: withUnit(metric), meaning: metric.meaning }, { title: "\u00b1", meaning: "half the width of the 95 % confidence interval" }]),
    { title: "verdicts ok", meaning: "runs that can be believed, of all" },
  ];
  const rows = page.groups.map((group) => [
    ...columns.filter((column) => column.of).map((column) => column.of(group)),
    [String(group.metrics.gpu_utilization.n), group.metrics.gpu_utilization.n],
    ...METRICS.flatMap((metric) => {
      const numbers = groupNumbers(group, metric);
      if (!numbers) return [MISSING_CELL, MISSING_CELL];
      return [[shownMean(numbers), numbers.mean], numbers.half === null ? MISSING_CELL : [numbers.half.toFixed(metric.digits), numbers.half]];
    }),
    [`${group.ok} of ${group.runs}`, group.ok / group.runs],
  ]);
  sortableTable(part, columns, rows, { title: "means", name: "means" });
}

/** A heat map over two of the parameters; the others are fixed. */
export function heatSection(main, page) {
  const axes = groupAxes(page);
  if (axes.length < 2) return;
  const part = section("parameters", "Two parameters", "Means over seeds, with half the width of their 95 % confidence intervals. Grey: a gain that is not larger than its spread over the seeds, which proves nothing.");
  const chosen = { metric: 0, x: 0, y: 1, fixed: axes.map((axis) => (axis.label === "scheduler" ? axis.values.length - 1 : 0)) };
  const controls = make("div", { class: "row" });
  const room = make("div");
  const names = axes.map((axis, index) => [index, axis.label]);

  function swap(place, other, value) {
    if (chosen[other] === value) chosen[other] = chosen[place];
    chosen[place] = value;
    draw();
  }

  function draw() {
    const others = axes.map((axis, index) => [axis, index]).filter(([, index]) => index !== chosen.x && index !== chosen.y);
    fill(controls,
      select("show", metricOptions, chosen.metric, (value) => { chosen.metric = Number(value); draw(); }).element,
      select("across", names, chosen.x, (value) => swap("x", "y", Number(value))).element,
      select("down", names, chosen.y, (value) => swap("y", "x", Number(value))).element,
      others.map(([axis, index]) => select(axis.label, axis.values.map((value, place) => [place, value]), chosen.fixed[index], (value) => { chosen.fixed[index] = Number(value); draw(); }).element));
    fill(room);
    heatMap(room, heatSpec(page, axes, chosen, others));
  }

  draw();
  part.append(controls, room);
  main.append(part);
}

function heatSpec(page, axes, chosen, others) {
  const [x, y, metric] = [axes[chosen.x], axes[chosen.y], METRICS[chosen.metric]];
  const kept = page.groups.filter((group) => others.every(([axis, index]) => axis.of(group) === axis.values[chosen.fixed[index]]));
  const cells = y.values.map((row) => x.values.map((column) => {
    const group = kept.find((each) => x.of(each) === column && y.of(each) === row);
    const numbers = group ? groupNumbers(group, metric) : null;
    if (!numbers) return null;
    return { value: numbers.mean, text: shownMean(numbers), small: shownHalf(numbers, metric), hover: groupHover(groupLabel(page, group), numbers, metric), unproven: numbers.unproven };
  }));
  const where = others.map(([axis, index]) => `${axis.label} ${axis.values[chosen.fixed[index]]}`).join(", ");
  return { title: withUnit(metric) + (where ? `; ${where}` : ""), name: `heat-map-${metric.key}`, x: { label: x.label, values: x.values }, y: { label: y.label, values: y.values }, cells };
}

/** Distributions as boxes; `entries`: page.iterations or page.loads; `scale` x a value is in `unit`. */
export function distributionSection(main, page, entries, texts) {
  const kinds = [...new Set(entries.map((entry) => entry.of))];
  if (!kinds.length) return;
  const read = page.read < page.run_count ? ` Of the first ${page.read} of ${page.run_count} runs.` : "";
  const part = section(texts.id, texts.title, `${texts.note} The box spans the middle half, its mark is the median, the thick line spans 5 to 95 %, the thin one all.${read}`);
  const room = make("div");
  const draw = (kind) => {
    const own = entries.filter((entry) => entry.of === kind);
    const label = (entry) => `${page.keys.length ? `${entry.settings.join(", ")}, seed ${entry.seed}` : entry.label}, ${entry.scheduler}`;
    const scaled = (entry) => entry.quantiles.map((value) => value * texts.scale);
    const rows = own.slice(0, MOST_DRAWN).map((entry) => ({
      label: label(entry),
      color: colorOf(page, entry.scheduler),
      box: scaled(entry),
      hover: `${label(entry)}: median ${scaled(entry)[3].toPrecision(4)} ${texts.unit}, mean ${(entry.mean * texts.scale).toPrecision(4)} ${texts.unit}, ${entry.n} ${texts.things}`,
    }));
    const csv = own.map((entry) => [entry.label, entry.scheduler, entry.n, entry.mean * texts.scale, ...scaled(entry)]);
    const head = ["run", "scheduler", texts.things, "mean", "minimum", "5 %", "25 %", "median", "75 %", "95 %", "maximum"];
    fill(room);
    rangePlot(room, { title: `${texts.title}: ${kind}`, name: `${texts.id}-${kind}`, x: { label: `${texts.axis}, ${texts.unit}`, fromZero: texts.fromZero }, rows }, { head, rows: csv });
    if (own.length > MOST_DRAWN) room.append(make("p", { class: "facts" }, `The first ${MOST_DRAWN} of ${own.length}; the CSV file has all.`));
  };
  part.append(make("div", { class: "row" }, select(texts.choose, kinds.map((kind) => [kind, kind]), kinds[0], draw).element), room);
  draw(kinds[0]);
  main.append(part);
}

/** Rows for the bars of idle time: means over the runs of each group. */
export function idleRows(page) {
  const axes = groupAxes(page).filter((axis) => axis.label !== "scheduler");
  return page.groups.slice(0, MOST_DRAWN).map((group) => {
    const [exposed, straggler, start] = group.idle.map((share) => 100 * share);
    return { job: axes.map((axis) => axis.of(group)).join(", ") || group.scenario, run: group.scheduler, exposed, straggler, start };
  });
}
