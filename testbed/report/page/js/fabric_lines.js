// The lines of a fabric on a canvas of their own: colours change with every sample, and nothing else has to be drawn again.

import { inkColors, isDark, loadColor } from "./colors.js";

const BINS = 40;
const MANY_LINES = 600;

/** Draws `layout.lines` into `canvas`; the busiest on top. */
export class FabricLines {
  constructor(canvas, layout) {
    this.canvas = canvas;
    this.layout = layout;
    this.view = { zoom: 1, pan: { x: 0, y: 0 } };
    canvas.width = layout.width * devicePixelRatio;
    canvas.height = layout.height * devicePixelRatio;
    canvas.style.width = `${layout.width}px`;
    canvas.style.height = `${layout.height}px`;
  }

  /** loads: shares by link; marked: Set of links that do not fade, or null; chosen: a link or -1. */
  draw(loads, marked, chosen) {
    const pen = this.canvas.getContext("2d");
    const scale = this.view.zoom * devicePixelRatio;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.setTransform(scale, 0, 0, scale, this.view.pan.x * devicePixelRatio, this.view.pan.y * devicePixelRatio);
    const bins = Array.from({ length: BINS + 1 }, () => []);
    loads.forEach((load, link) => bins[loadBin(load)].push(link));
    if (marked) {
      pen.globalAlpha = 0.1;
      bins.forEach((links, bin) => this.stroke(pen, links.filter((link) => !marked.has(link)), bin));
      pen.globalAlpha = 1;
    }
    bins.forEach((links, bin) => this.stroke(pen, marked ? links.filter((link) => marked.has(link)) : links, bin));
    if (chosen >= 0) this.emphasise(pen, chosen, loadBin(loads[chosen]));
  }

  width(bin) {
    return (0.6 + 0.7 * (bin / BINS)) * (this.layout.lines.length > MANY_LINES ? 1.2 : 2.4);
  }

  stroke(pen, links, bin) {
    if (!links.length) return;
    pen.strokeStyle = loadColor(bin / BINS, isDark());
    pen.lineWidth = this.width(bin);
    pen.beginPath();
    for (const link of links) this.trace(pen, link);
    pen.stroke();
  }

  emphasise(pen, link, bin) {
    pen.strokeStyle = inkColors().text;
    pen.lineWidth = this.width(bin) + 6;
    pen.globalAlpha = 0.55;
    pen.beginPath();
    this.trace(pen, link);
    pen.stroke();
    pen.globalAlpha = 1;
    this.stroke(pen, [link], bin);
  }

  trace(pen, link) {
    const { x1, y1, x2, y2 } = this.layout.lines[link];
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
  }
}

/** The step of the colour scale of a load. */
export function loadBin(load) {
  return Math.round(Math.max(0, Math.min(1, load)) * BINS);
}

/** The colour in which a load is drawn. */
export function lineColor(load) {
  return loadColor(loadBin(load) / BINS, isDark());
}
