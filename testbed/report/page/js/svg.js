// SVG files of what is drawn on canvases, so that they can go into a paper.

function svgEscape(text) {
  return String(text).replace(/[&<>"]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[char]);
}

/** One element: svgTag("line", {x1: 0}, "text"). */
export function svgTag(tag, attributes, text = "") {
  const listed = Object.entries(attributes).map(([name, value]) => {
    const shown = typeof value === "number" ? Number(value.toFixed(2)) : svgEscape(value);
    return `${name}="${shown}"`;
  });
  return `<${tag} ${listed.join(" ")}>${svgEscape(text)}</${tag}>`;
}

/** A whole file of `parts`, on white. */
export function svgFile(width, height, parts) {
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const font = 'font-family="Helvetica, Arial, sans-serif" font-size="11"';
  const ground = svgTag("rect", { width, height, fill: "#ffffff" });
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${font}>\n${ground}\n${parts.join("\n")}\n</svg>\n`;
}

/** About `count` round numbers from `low` to `high`. */
export function roundTicks(low, high, count = 6) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = power * ([1, 2, 5, 10].find((factor) => span / (factor * power) <= count) ?? 10);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) ticks.push(Number(tick.toPrecision(10)));
  return ticks;
}

/** Axes with ticks and labels around a box; returns its scale functions and the parts drawn. */
export function svgAxes(box, x, y) {
  const toX = (value) => box.left + ((value - x.min) / (x.max - x.min || 1)) * box.width;
  const toY = (value) => box.top + box.height - ((value - y.min) / (y.max - y.min || 1)) * box.height;
  const bottom = box.top + box.height;
  const parts = [svgTag("rect", { x: box.left, y: box.top, width: box.width, height: box.height, fill: "none", stroke: "#767676" })];
  for (const tick of roundTicks(x.min, x.max)) {
    parts.push(svgTag("line", { x1: toX(tick), x2: toX(tick), y1: bottom, y2: bottom + 4, stroke: "#767676" }));
    parts.push(svgTag("text", { x: toX(tick), y: bottom + 16, "text-anchor": "middle" }, tick));
  }
  for (const tick of y.ticks ?? roundTicks(y.min, y.max, 4).map((value) => [value, value])) {
    parts.push(svgTag("text", { x: box.left - 6, y: toY(tick[0]) + 4, "text-anchor": "end" }, tick[1]));
  }
  parts.push(svgTag("text", { x: box.left + box.width, y: bottom + 30, "text-anchor": "end" }, x.label));
  parts.push(svgTag("text", { x: box.left, y: box.top - 8 }, y.label));
  return { toX, toY, parts };
}
