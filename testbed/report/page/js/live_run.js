// What a run that goes on has told so far: its events, taken together.

const THOUSANDTHS = 1000;

/** The last sample of a run; `loads` are shares of each link's rate, `levels` those at which each link sent. */
export class LiveRun {
  constructor(fabric) {
    this.linkCount = fabric.links.length;
    this.begin({ scheduler: "" });
  }

  /** Another run begins: nothing is known of it. */
  begin({ scheduler }) {
    this.scheduler = scheduler;
    this.phase = "";
    this.ended = null;
    this.routes = {};
    this.sample = { time_s: 0, utilization: null, jobs: [], loads: [] };
    this.spread();
  }

  take(sample) {
    this.sample = sample;
    this.spread();
  }

  /** From triples of link, level and thousandths to loads and levels by link. */
  spread() {
    this.loads = new Float32Array(this.linkCount);
    this.levels = new Map();
    const triples = this.sample.loads;
    for (let i = 0; i < triples.length; i += 3) {
      const [link, level, share] = [triples[i], triples[i + 1], triples[i + 2] / THOUSANDTHS];
      this.loads[link] += share;
      this.levels.set(link, [...(this.levels.get(link) ?? []), { level, share }].sort((a, b) => a.level - b.level));
    }
  }

  /** Jobs whose paths cross `link`, as the sample has them. */
  jobsOn(link) {
    const names = new Set(Object.keys(this.routes).filter((name) => this.routes[name].includes(link)));
    return this.sample.jobs.filter((job) => names.has(job.name));
  }

  /** The `count` links with the highest loads. */
  busiest(count) {
    const links = [...this.levels.keys()];
    return links.sort((a, b) => this.loads[b] - this.loads[a] || a - b).slice(0, count);
  }
}
