// Columns of numbers as testbed/report/page/encoding.py writes them.

const KINDS = { u8: Uint8Array, u32: Uint32Array, f32: Float32Array };

/** {u8|u32|f32: base64} -> typed array; null stays null. */
export function decodeColumn(column) {
  if (column === null) return null;
  const [kind, text] = Object.entries(column)[0];
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  return new KINDS[kind](bytes.buffer);
}

/** A load in a byte -> share of the link's rate. */
export const LOAD_STEPS = 200;

/** The document in <script id="data">. */
export function readDocument() {
  return JSON.parse(document.getElementById("data").textContent);
}
