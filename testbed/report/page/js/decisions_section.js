// What each scheduler decided, when and why.

import { make, scrollBox, section } from "./dom.js";
import { millisecondsCell, secondsCell } from "./format.js";
import { sortableTable } from "./table.js";

/** A table of decisions per run, and the paths in force at the end. */
export function decisionsSection(main, page) {
  const part = section("decisions", "Decisions");
  for (const run of page.runs) {
    const rows = run.decisions.rows.map(([time, cause, confirmed, paths, levels]) => [[secondsCell(time, 3), time], cause, [millisecondsCell(confirmed), confirmed], [String(paths), paths], levels]);
    const box = make("div", { class: "wrapping" });
    part.append(box);
    const all = run.decisions.count > rows.length ? `, ${rows.length} of ${run.decisions.count}` : "";
    sortableTable(box, [{ title: "time s", meaning: "of the run" }, { title: "cause", text: true, meaning: "the event that made the scheduler decide" }, { title: "confirmed after ms", meaning: "until all switches had the rules" },
      { title: "paths", meaning: "flows that have a path by the decision" }, { title: "levels", text: true, meaning: "0 is served first" }], rows, { title: `${run.title}${all}`, name: `decisions-${run.scheduler}` });
    if (run.decisions.paths.length) part.append(pathList(page, run));
  }
  main.append(part);
}

function pathList(page, run) {
  const list = make("pre");
  const show = () => {
    if (!list.textContent) list.textContent = run.decisions.paths.map(([flow, links]) => `${flow}: ${links.map((link) => page.fabric.links[link].name).join(" ")}`).join("\n");
  };
  return make("details", { ontoggle: show }, make("summary", {}, "paths in force at the end"), scrollBox(`paths of ${run.title}`, list));
}
