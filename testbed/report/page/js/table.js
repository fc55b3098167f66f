// Tables that sort by a click on a head, and can be taken away as CSV.

import { button, make, scrollBox } from "./dom.js";
import { csvText, CSV, downloadButtons } from "./download.js";

const VERDICTS = ["ok", "degraded", "invalid"];

const cellText = (cell) => (Array.isArray(cell) ? cell[0] : (cell.text ?? cell));
const cellNumber = (cell) => (Array.isArray(cell) ? cell[1] : Number.parseFloat(cellText(cell)));

function compareCells(left, right) {
  const [a, b] = [cellNumber(left), cellNumber(right)];
  if (a !== b && !Number.isNaN(a) && !Number.isNaN(b)) return a - b;
  if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
  return cellText(left).localeCompare(cellText(right), "en", { numeric: true });
}

function shownCell(cell, column) {
  const text = cellText(cell);
  const verdict = VERDICTS.includes(text) ? `verdict-${text}` : "";
  const shown = cell.href ? make("a", { href: cell.href }, text) : text;
  return make("td", { class: `${column.text ? "text" : ""} ${verdict}`.trim() || null }, shown);
}

/**
 * Draw a table into `element`.
 * columns: [{title, meaning, text}]; rows: [[cell]], a cell is a string, [string, number to sort by] or {text, href}.
 * options: {title, name (of the CSV file), onRow(index of the row as given), search (offer to search)}. Returns {element}.
 */
export function sortableTable(element, columns, rows, options = {}) {
  let sorted = rows.map((row, index) => [row, index]);
  let order = { column: -1, descending: false };
  let sought = "";
  const body = make("tbody");
  const heads = columns.map((column, place) =>
    make(
      "th",
      { scope: "col", class: column.text ? "text" : null, "aria-sort": "none" },
      button(column.title, () => sortBy(place), { class: "sort", title: column.meaning || null }),
    ),
  );

  function draw() {
    const found = sorted.filter(([row]) => row.some((cell) => cellText(cell).toLowerCase().includes(sought)));
    body.replaceChildren(...found.map(([row, index]) => make(
      "tr",
      options.onRow ? { onclick: () => options.onRow(index), class: "choosable" } : {},
      row.map((cell, place) => shownCell(cell, columns[place])),
    )));
  }

  function sortBy(place) {
    const descending = order.column === place ? !order.descending : !columns[place].text;
    order = { column: place, descending };
    sorted.sort(([a], [b]) => (descending ? -1 : 1) * compareCells(a[place], b[place]));
    heads.forEach((head, each) => {
      head.setAttribute("aria-sort", each !== place ? "none" : descending ? "descending" : "ascending");
    });
    draw();
  }

  draw();
  const title = options.title ?? "table";
  const save = () => csvText(columns.map((column) => column.title), sorted.map(([row]) => row.map(cellText)));
  const search = make("input", { type: "search", class: "search", "aria-label": `search in ${title}`, placeholder: "search", oninput: (event) => { sought = event.target.value.trim().toLowerCase(); draw(); } });
  element.append(
    make("div", { class: "caption" }, make("h3", {}, title), options.search ? search : null, downloadButtons(["CSV", `${options.name ?? title}.csv`, CSV, save])),
    scrollBox(title, make("table", {}, make("thead", {}, make("tr", {}, heads)), body)),
  );
  return { element };
}
