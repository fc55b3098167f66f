// The index of a folder of runs.

import { readDocument } from "./codec.js";
import { make, section } from "./dom.js";
import { sortableTable } from "./table.js";

function drawIndex() {
  const page = readDocument();
  const main = document.getElementById("main");
  main.replaceChildren();
  const columns = [
    { title: "scenario", text: true },
    { title: "time", text: true, meaning: "when the run began, local time" },
    { title: "engine", text: true },
    { title: "seed" },
    { title: "schedulers", text: true },
    { title: "GPU utilisation, %", text: true, meaning: "of each scheduler, in the same order" },
    { title: "verdicts", text: true },
    { title: "directory", text: true },
  ];
  const rows = page.runs.map((run) => [
    { text: run.scenario, href: run.report },
    run.time,
    run.engine,
    run.seed === null ? "-" : [String(run.seed), run.seed],
    run.schedulers.join(", "),
    [run.utilization.map((share) => (100 * share).toFixed(1)).join(", "), Math.max(-1, ...run.utilization)],
    run.verdicts,
    run.directory,
  ]);
  const part = section("runs", "Runs");
  sortableTable(part, columns, rows, { title: "runs, the newest first", name: "runs", search: true });
  main.append(part);
  if (page.comparisons.length) {
    const others = section("comparisons", "Comparisons and sweeps");
    others.append(make("ul", {}, page.comparisons.map((each) => make("li", {}, each.report ? make("a", { href: each.report }, each.directory) : each.directory, ` ${each.what}`))));
    main.append(others);
  }
  if (page.unreadable.length) {
    const broken = section("unreadable", "Not finished or not readable");
    broken.append(make("ul", {}, page.unreadable.map((line) => make("li", {}, line))));
    main.append(broken);
  }
}

drawIndex();
document.documentElement.dataset.drawn = "yes";
