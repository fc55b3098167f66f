// Buttons beside plots on one axis of time: what dragging does, by keyboard.

import { button, make } from "./dom.js";

/** Buttons that move a shared window of time. */
export function windowControls(window) {
  return make("div", { class: "row" },
    button("zoom in", () => window.zoom(0.5)), button("zoom out", () => window.zoom(2)),
    button("earlier", () => window.move(-0.5)), button("later", () => window.move(0.5)),
    button("whole run", () => window.set(0, window.end)), button("first view", () => window.reset()),
    make("span", { class: "facts" }, "or drag across a plot; all plots move together"));
}
