// Files that the reader takes away: CSV and SVG.

import { button } from "./dom.js";

/** Offer `text` as the file `name`. */
export function saveText(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name.replace(/[^A-Za-z0-9._-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function csvCell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  // A spreadsheet would run a cell that begins like a formula.
  const plain = typeof value === "string" && /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/** Rows of cells as CSV text. */
export function csvText(head, rows) {
  return [head, ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
}

/** Buttons that download: `files` are [label, file name, type, () => text]. */
export function downloadButtons(...files) {
  return files.map(([label, name, type, text]) =>
    button(label, () => saveText(name, text(), type), { class: "download", "aria-label": `download ${name}` }),
  );
}

export const CSV = "text/csv;charset=utf-8";
export const SVG = "image/svg+xml;charset=utf-8";
