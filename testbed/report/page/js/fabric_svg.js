// The fabric as an SVG file, as it is coloured now.

import { loadColor } from "./colors.js";
import { svgFile, svgTag } from "./svg.js";

export function fabricSvg(layout, loads) {
  const order = layout.lines.map((line, index) => index).sort((a, b) => loads[a] - loads[b]);
  const parts = order.map((index) => {
    const { x1, y1, x2, y2 } = layout.lines[index];
    const share = Math.min(1, loads[index]);
    return svgTag("line", { x1, y1, x2, y2, stroke: loadColor(share, false), "stroke-width": 1 + 2 * share });
  });
  for (const box of layout.boxes.values()) {
    const corner = { x: box.x - box.width / 2, y: box.y - box.height / 2, width: box.width, height: box.height };
    const port = box.tier === "port";
    parts.push(svgTag("rect", { ...corner, fill: port ? "#8a919b" : "#f4f5f7", stroke: port ? "none" : "#8a919b" }));
    if (!port && box.name.length * 6.4 <= box.width) {
      parts.push(svgTag("text", { x: box.x, y: box.y + 4, "text-anchor": "middle" }, box.name));
    }
  }
  [0, 0.25, 0.5, 0.75, 1].forEach((step, index) => {
    parts.push(svgTag("rect", { x: 8 + 70 * index, y: layout.height + 4, width: 14, height: 14, fill: loadColor(step, false) }));
    parts.push(svgTag("text", { x: 26 + 70 * index, y: layout.height + 16 }, `${100 * step} %`));
  });
  return svgFile(layout.width, layout.height + 28, parts);
}
