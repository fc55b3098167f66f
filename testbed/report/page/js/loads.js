// Load of every link over time, by job and level; see README.md for the shape of what is read.

import { decodeColumn, LOAD_STEPS } from "./codec.js";

/** Loads of one run: shares of each link's rate; a sample lasts from edges[i] to edges[i + 1], in seconds. */
export class RunLoads {
  constructor(view, linkCount) {
    this.edges = view ? view.edges_s : [0, 1];
    this.samples = this.edges.length - 1;
    this.linkCount = linkCount;
    this.series = view ? view.series.map(([link, job, level], index) => ({ link, job, level, index })) : [];
    this.values = view ? decodeColumn(view.values) : new Uint8Array(0);
    this.byLink = Array.from({ length: linkCount }, () => []);
    this.totals = new Uint16Array(linkCount * this.samples);
    for (const each of this.series) {
      this.byLink[each.link].push(each);
      const from = each.index * this.samples;
      for (let i = 0; i < this.samples; i++) this.totals[each.link * this.samples + i] += this.values[from + i];
    }
  }

  /** Float32Array: load of every link in a sample. */
  at(sample) {
    const found = new Float32Array(this.linkCount);
    for (let link = 0; link < this.linkCount; link++) found[link] = this.totals[link * this.samples + sample] / LOAD_STEPS;
    return found;
  }

  /** Float32Array: mean load of every link over samples `from` to `to` (exclusive), weighted by their length. */
  mean(from = 0, to = this.samples) {
    const found = new Float32Array(this.linkCount);
    const whole = this.edges[to] - this.edges[from] || 1;
    for (let link = 0; link < this.linkCount; link++) {
      let sum = 0;
      for (let i = from; i < to; i++) sum += this.totals[link * this.samples + i] * (this.edges[i + 1] - this.edges[i]);
      found[link] = sum / LOAD_STEPS / whole;
    }
    return found;
  }

  /** The sample that contains `time`; the nearest one outside the run. */
  sampleAt(time) {
    let [low, high] = [0, this.samples - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.edges[middle + 1] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** [{job, levels, loads}] of a link: each job once, its levels together. */
  jobsOn(link) {
    const found = new Map();
    for (const { job, level, index } of this.byLink[link]) {
      const entry = found.get(job) ?? { job, levels: [], loads: new Float32Array(this.samples) };
      if (!entry.levels.includes(level)) entry.levels.push(level);
      const from = index * this.samples;
      for (let i = 0; i < this.samples; i++) entry.loads[i] += this.values[from + i] / LOAD_STEPS;
      found.set(job, entry);
    }
    return [...found.values()].sort((a, b) => a.job - b.job);
  }

  /** Set of the links on which `job` sent anything from sample `from` to `to` (exclusive). */
  linksOf(job, from = 0, to = this.samples) {
    const found = new Set();
    for (const each of this.series) {
      if (each.job !== job) continue;
      const start = each.index * this.samples;
      for (let i = from; i < to; i++) if (this.values[start + i]) { found.add(each.link); break; }
    }
    return found;
  }

  /** Share of the run in which two jobs or more sent on `link`. */
  sharedTime(link) {
    const jobs = this.jobsOn(link).filter((entry) => entry.job >= 0);
    let shared = 0;
    for (let i = 0; i < this.samples; i++) {
      if (jobs.filter((entry) => entry.loads[i] > 0.01).length > 1) shared += this.edges[i + 1] - this.edges[i];
    }
    return shared / (this.edges[this.samples] - this.edges[0] || 1);
  }

  /** The sample with the largest load in all, between two times. */
  busiestSample(fromTime, toTime) {
    let [best, most] = [0, -1];
    for (let i = 0; i < this.samples; i++) {
      if (this.edges[i] < fromTime || this.edges[i + 1] > toTime) continue;
      let sum = 0;
      for (let link = 0; link < this.linkCount; link++) sum += this.totals[link * this.samples + i];
      if (sum > most) [best, most] = [i, sum];
    }
    return best;
  }
}

export const LINK_KINDS = { "host-tor": "host and ToR", "tor-agg": "ToR and aggregation", "agg-core": "aggregation and core" };

/** Links between switches by mean load over all `runs`, the busiest first; those of hosts after them. */
export function busiestLinks(fabric, runs, count) {
  const sums = new Float32Array(fabric.links.length);
  for (const run of runs) run.mean().forEach((load, link) => { sums[link] = Math.max(sums[link], load); });
  return fabric.links
    .map((link, index) => index)
    .filter((index) => sums[index] > 0)
    .sort((a, b) => (fabric.links[a].kind === "host-tor") - (fabric.links[b].kind === "host-tor") || sums[b] - sums[a] || a - b)
    .slice(0, count);
}
