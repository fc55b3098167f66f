// Idle GPU time by cause, a bar per job and scheduler.

import { CAUSES } from "./colors.js";
import { make, section } from "./dom.js";
import { csvText, CSV, downloadButtons, SVG } from "./download.js";
import { swatch } from "./fabric.js";
import { svgFile, svgTag } from "./svg.js";

const IDLE = CAUSES.slice(1).map(({ key, word, color }) => ({ key, word, color }));
const idleTotal = (row) => IDLE.reduce((sum, cause) => sum + row[cause.key], 0);

function idleSvg(rows, scale) {
  const parts = rows.flatMap((row, index) => {
    let left = 260;
    const bars = IDLE.map((cause) => {
      const width = (row[cause.key] / scale) * 540;
      left += width;
      return svgTag("rect", { x: left - width, y: 30 + 18 * index, width, height: 14, fill: cause.color });
    });
    const names = svgTag("text", { x: 252, y: 41 + 18 * index, "text-anchor": "end" }, `${row.job}, ${row.run}`);
    return [names, ...bars, svgTag("text", { x: left + 5, y: 41 + 18 * index }, `${idleTotal(row).toFixed(1)} %`)];
  });
  const keys = IDLE.flatMap((cause, index) => [
    svgTag("rect", { x: 260 + 190 * index, y: 6, width: 12, height: 12, fill: cause.color }),
    svgTag("text", { x: 277 + 190 * index, y: 16 }, cause.word),
  ]);
  return svgFile(900, 50 + 18 * rows.length, [...keys, ...parts]);
}

/** Bars of idle time; page.idle: [{job, run, exposed, straggler, start}] in percent of the time allocated. */
export function idleSection(main, page) {
  const part = section("idle", "Why GPUs were idle", "Idle GPU time in percent of the time that the GPUs were allocated.");
  const scale = Math.max(5, ...page.idle.map(idleTotal));
  const bars = page.idle.map((row, index) => {
    const first = index === 0 || page.idle[index - 1].job !== row.job;
    const pieces = IDLE.map((cause) => {
      const piece = make("span", { class: "piece", title: `${cause.word}: ${row[cause.key].toFixed(1)} %` });
      piece.style.width = `${(100 * row[cause.key]) / scale}%`;
      piece.style.background = cause.color;
      return piece;
    });
    return make("div", { class: first ? "bar first" : "bar" },
      make("span", { class: "bar-name" }, `${row.job}, ${row.run}`),
      make("span", { class: "bar-room" }, pieces, make("span", { class: "bar-value" }, ` ${idleTotal(row).toFixed(1)} %`)));
  });
  const csv = () => csvText(["job", "scheduler", ...IDLE.map((cause) => `${cause.word} %`)], page.idle.map((row) => [row.job, row.run, ...IDLE.map((cause) => row[cause.key])]));
  part.append(
    make("div", { class: "row" }, make("div", { class: "legend" }, IDLE.map((cause) => make("span", { class: "key" }, swatch(cause.color), cause.word))),
      downloadButtons(["CSV", "idle-time.csv", CSV, csv], ["SVG", "idle-time.svg", SVG, () => idleSvg(page.idle, scale)])),
    make("div", { class: "bars" }, bars));
  main.append(part);
}
