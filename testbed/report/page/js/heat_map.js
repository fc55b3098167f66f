// A heat map of two parameters: a table whose cells are coloured by their number.

import { make, scrollBox } from "./dom.js";
import { csvText, CSV, downloadButtons, SVG } from "./download.js";
import { svgFile, svgTag } from "./svg.js";

// Cividis: even steps of lightness, the same for all kinds of colour vision. The text in a cell is black or white.
const STOPS = [[0, 32, 77], [50, 72, 107], [108, 110, 114], [165, 152, 112], [213, 196, 98], [255, 234, 70]];
const CELL = { width: 96, height: 44 };

function heatColor(share) {
  const place = Math.max(0, Math.min(1, share)) * (STOPS.length - 1);
  const below = Math.min(STOPS.length - 2, Math.floor(place));
  return STOPS[below].map((value, index) => Math.round(value + (place - below) * (STOPS[below + 1][index] - value)));
}

/** {fill, text} of a cell; contrast of its text is at least 4.5. */
function heatInk(share) {
  const color = heatColor(share);
  const [r, g, b] = color.map((value) => { const c = value / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return { fill: `rgb(${color.join(",")})`, text: luminance > 0.18 ? "#000000" : "#ffffff" };
}

const UNPROVEN = { fill: "#e4e4e4", text: "#5a5a5a" };
const cellInk = (cell, share) => (cell.unproven ? UNPROVEN : heatInk(share(cell.value)));

function heatShares(cells) {
  const values = cells.flat().filter(Boolean).map((cell) => cell.value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return (value) => (high > low ? (value - low) / (high - low) : 0.5);
}

function heatSvg(spec, share) {
  const left = 24 + 6.6 * Math.max(spec.y.label.length, ...spec.y.values.map((value) => value.length));
  const heads = spec.x.values.map((value, column) => svgTag("text", { x: left + CELL.width * (column + 0.5), y: 44, "text-anchor": "middle" }, value));
  const rows = spec.cells.flatMap((cells, row) => {
    const top = 52 + CELL.height * row;
    const drawn = cells.flatMap((cell, column) => {
      if (!cell) return [];
      const ink = cellInk(cell, share);
      const x = left + CELL.width * column;
      const lines = [[cell.text, 18], [cell.small, 34]].filter(([text]) => text);
      return [svgTag("rect", { x, y: top, width: CELL.width - 2, height: CELL.height - 2, fill: ink.fill }),
        ...lines.map(([text, down]) => svgTag("text", { x: x + CELL.width / 2 - 1, y: top + down, "text-anchor": "middle", fill: ink.text }, text))];
    });
    return [svgTag("text", { x: left - 8, y: top + CELL.height / 2 + 4, "text-anchor": "end" }, spec.y.values[row]), ...drawn];
  });
  const titles = [svgTag("text", { x: left, y: 16 }, `${spec.title}: ${spec.x.label}`), svgTag("text", { x: left - 8, y: 44, "text-anchor": "end" }, spec.y.label)];
  return svgFile(left + CELL.width * spec.x.values.length + 16, 64 + CELL.height * spec.y.values.length, [...titles, ...heads, ...rows]);
}

function heatCell(cell, share) {
  if (!cell) return make("td", { class: "heat" }, "-");
  const shown = make("td", { class: "heat", title: cell.hover }, cell.text, cell.small ? make("small", {}, cell.small) : null);
  const ink = cellInk(cell, share);
  shown.style.background = ink.fill;
  shown.style.color = ink.text;
  return shown;
}

/**
 * Draw a heat map into `element`.
 * spec: {title, name, x: {label, values: [text]}, y: {label, values: [text]}, cells: [row][column] {value, text, small, hover} or null}.
 */
export function heatMap(element, spec) {
  const share = heatShares(spec.cells);
  const head = make("tr", {}, make("th", { scope: "col", class: "heat-corner" }, `${spec.y.label} \\ ${spec.x.label}`), spec.x.values.map((value) => make("th", { scope: "col", class: "heat-head" }, value)));
  const body = spec.cells.map((cells, row) => make("tr", {}, make("th", { scope: "row", class: "heat-head" }, spec.y.values[row]), cells.map((cell) => heatCell(cell, share))));
  const csv = () => csvText([`${spec.y.label} \\ ${spec.x.label}`, ...spec.x.values], spec.cells.map((cells, row) => [spec.y.values[row], ...cells.map((cell) => cell?.value)]));
  element.append(
    make("div", { class: "caption" }, make("h3", {}, spec.title), downloadButtons(["CSV", `${spec.name}.csv`, CSV, csv], ["SVG", `${spec.name}.svg`, SVG, () => heatSvg(spec, share)])),
    scrollBox(spec.title, make("table", { class: "heat-map" }, make("thead", {}, head), make("tbody", {}, body))),
  );
}
