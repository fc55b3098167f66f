// What another scheduler changes: levels of jobs, links that carry more or less.

import { make } from "./dom.js";
import { percentText, pointsBetween } from "./format.js";
import { sortableTable } from "./table.js";

const SHOWN = 12;

/** Draw what differs between two runs (their places) over the whole of each. */
export function changesBetween(element, page, allLoads, before, after) {
  element.replaceChildren();
  if (before === after) return;
  const [old, now] = [page.runs[before], page.runs[after]];
  const [oldMean, newMean] = [allLoads[before].mean(), allLoads[after].mean()];
  const ranked = page.fabric.links.map((link, index) => index)
    .filter((index) => Math.abs(newMean[index] - oldMean[index]) > 0.005)
    .sort((a, b) => Math.abs(newMean[b] - oldMean[b]) - Math.abs(newMean[a] - oldMean[a]))
    .slice(0, SHOWN);
  const names = (loads, link) => loads.jobsOn(link).filter((entry) => entry.job >= 0).map((entry) => page.jobs[entry.job].name).join(", ") || "-";
  const rows = ranked.map((link) => [
    page.fabric.links[link].name,
    [percentText(oldMean[link]), oldMean[link]],
    [percentText(newMean[link]), newMean[link]],
    [pointsBetween(oldMean[link], newMean[link]), newMean[link] - oldMean[link]],
    names(allLoads[before], link),
    names(allLoads[after], link),
  ]);
  const levels = page.jobs.filter((job) => old.job_numbers[job.name]?.level !== now.job_numbers[job.name]?.level)
    .map((job) => `${job.name} ${old.job_numbers[job.name]?.level ?? "-"} \u2192 ${now.job_numbers[job.name]?.level ?? "-"}`);
  element.append(make("p", { class: "facts" }, levels.length ? `Levels: ${levels.join(", ")}.` : "No job's level changes."));
  sortableTable(element, [
    { title: "link", text: true },
    { title: `mean load, ${old.title}` }, { title: `mean load, ${now.title}` }, { title: "points", meaning: "difference of the two loads, in percentage points" },
    { title: `jobs, ${old.title}`, text: true }, { title: `jobs, ${now.title}`, text: true },
  ], rows, { title: `Links that change most from ${old.title} to ${now.title}`, name: "changed-links" });
}
