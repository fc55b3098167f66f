// The fabric as a picture: switches by tier, a line per direction of each cable, coloured by load.

import { inkColors, loadColor, onTheme } from "./colors.js";
import { button, fill, make } from "./dom.js";
import { layoutFabric } from "./layout.js";
import { FabricLines, lineColor } from "./fabric_lines.js";
import { fabricSvg } from "./fabric_svg.js";

function fabricElements(fabric, layout) {
  const nodes = [...layout.boxes.values()].map((box) => ({
    group: "nodes",
    // Labels shrink with their boxes, and show once they are large enough to be read.
    data: { id: box.name, label: box.tier === "port" ? "" : box.name, w: box.width, h: box.height, font: Math.min(11, box.width / (0.62 * box.name.length)) },
    position: { x: box.x, y: box.y },
    classes: box.tier,
    selectable: false,
  }));
  const edges = fabric.links.map((link, index) => {
    const { shift } = layout.lines[index];
    return {
      group: "edges",
      data: { id: `link ${index}`, index, source: link.source, target: link.target, end: `${shift}px 0px` },
    };
  });
  return [...nodes, ...edges];
}

function fabricStyle(ink) {
  const text = { label: "data(label)", color: ink.text, "font-size": "data(font)", "text-valign": "center", "min-zoomed-font-size": 6.5 };
  return [
    { selector: "node", style: { width: "data(w)", height: "data(h)", shape: "round-rectangle", "background-color": ink.node,
      "border-width": 1, "border-color": ink.border, "z-index": 1, ...text, events: "no" } },
    { selector: "node.host", style: { shape: "rectangle", "z-index": 0 } },
    { selector: "node.port", style: { "border-width": 0, "background-color": ink.border, "z-index": 2, shape: "rectangle" } },
    // Lines are drawn by fabric_lines.js; here they only feel clicks.
    { selector: "edge", style: { "curve-style": "straight", "source-endpoint": "data(end)", "target-endpoint": "data(end)", width: 3, "line-opacity": 0 } },
  ];
}

/**
 * Draw `fabric` (see README.md) into `element`.
 * options: {onLink(index)}: a click on a line. Returns
 * {setLoads(Float32Array by link), highlight(Set of links or null), choose(link or -1), svg() -> text, controls}. The
 * element .fabric-picture has linkColors() and linkPoint(link), the colours shown and a point on a line, for tests.
 */
export function drawFabric(element, fabric, options = {}) {
  const canvas = make("canvas", { class: "fabric-lines" });
  const room = make("div", { class: "fabric-room" });
  const picture = make("div", { class: "fabric-picture", role: "img", "aria-label": "fabric with links coloured by load; the table beside it says the same in words" }, canvas, room);
  const state = { loads: new Float32Array(fabric.links.length), marked: null, chosen: -1, lines: null };
  let [graph, waiting] = [null, false];

  function build() {
    const layout = layoutFabric(fabric, Math.max(280, element.clientWidth));
    picture.style.height = `${layout.height}px`;
    state.lines = new FabricLines(canvas, layout);
    if (graph) graph.destroy();
    graph = cytoscape({
      container: room,
      elements: fabricElements(fabric, layout),
      style: fabricStyle(inkColors()),
      layout: { name: "preset", fit: false },
      zoom: 1,
      pan: { x: 0, y: 0 },
      minZoom: 1,
      maxZoom: 40,
      userZoomingEnabled: false,
      userPanningEnabled: false,
      boxSelectionEnabled: false,
      autoungrabify: true,
      autounselectify: true,
    });
    graph.on("tap", "edge", (event) => options.onLink?.(event.target.data("index")));
    graph.on("viewport", () => {
      state.lines.view = { zoom: graph.zoom(), pan: { ...graph.pan() } };
      paint();
    });
    paint();
  }

  /** At most once per frame, whatever changed. */
  function paint() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      state.lines.draw(state.loads, state.marked, state.chosen);
    });
  }

  function show(changes) {
    Object.assign(state, changes);
    paint();
  }

  function zoomBy(factor) {
    const level = Math.max(1, graph.zoom() * factor);
    if (level === 1) graph.viewport({ zoom: 1, pan: { x: 0, y: 0 } });
    else graph.zoom({ level, renderedPosition: { x: graph.width() / 2, y: graph.height() / 2 } });
    graph.userPanningEnabled(level > 1);
  }

  const controls = make("div", { class: "row" },
    button("+", () => zoomBy(1.6), { "aria-label": "zoom in" }),
    button("\u2212", () => zoomBy(1 / 1.6), { "aria-label": "zoom out" }),
    button("whole fabric", () => zoomBy(0)),
  );
  fill(element, picture, controls);
  build();
  onTheme(build);
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth !== width) { width = element.clientWidth; build(); }
  }).observe(element);
  picture.linkColors = () => Array.from(state.loads, lineColor);
  picture.linkPoint = (link, along) => {
    const { x1, y1, x2, y2 } = state.lines.layout.lines[link];
    return { x: x1 + along * (x2 - x1), y: y1 + along * (y2 - y1) };
  };
  return {
    setLoads: (loads) => show({ loads }),
    highlight: (marked) => show({ marked }),
    choose: (chosen) => show({ chosen }),
    controls,
    svg: () => fabricSvg(layoutFabric(fabric, 1100), state.loads),
  };
}

/** The scale of colours, from nothing to all of a link's rate. */
export function loadLegend() {
  const steps = [0, 0.25, 0.5, 0.75, 1];
  const list = make("div", { class: "legend", "aria-label": "colours of load" });
  const draw = () => fill(list, "load of a link: ", steps.map((step) => make("span", { class: "key" },
    swatch(loadColor(step)), `${100 * step} %`)));
  draw();
  onTheme(draw);
  return list;
}

/** A small coloured box. */
export function swatch(color) {
  const box = make("span", { class: "swatch" });
  box.style.background = color;
  return box;
}
