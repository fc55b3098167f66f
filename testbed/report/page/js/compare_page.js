// The comparison page: reads the document and draws its sections.

import { readDocument } from "./codec.js";
import { distributionSection, heatSection, idleRows, runsSection, seedsSection } from "./compare_sections.js";
import { make } from "./dom.js";
import { idleSection } from "./idle_section.js";

function drawComparison() {
  const page = readDocument();
  const main = document.getElementById("main");
  main.replaceChildren();
  if (page.missing.length) {
    main.append(make("div", { class: "doubt" }, make("strong", {}, "Not every point of the sweep has a result."), make("ul", {}, page.missing.map((line) => make("li", {}, line)))));
  }
  // Who swept parameters asks about them first.
  for (const draw of page.keys.length ? [heatSection, seedsSection] : [seedsSection, heatSection]) draw(main, page);
  distributionSection(main, page, page.iterations, { id: "iteration-times", title: "Iteration times", note: "Measured iterations; each is the mean over its job's GPUs.", axis: "iteration time", unit: "s", things: "iterations", choose: "job", scale: 1 });
  distributionSection(main, page, page.loads, { id: "link-loads", title: "Load of links", note: "Mean load of every link over the run, in percent of its rate.", axis: "mean load", unit: "%", things: "links", choose: "links", scale: 100, fromZero: true });
  if (page.groups.length) idleSection(main, { idle: idleRows(page) });
  runsSection(main, page);
}

drawComparison();
document.documentElement.dataset.drawn = "yes";
