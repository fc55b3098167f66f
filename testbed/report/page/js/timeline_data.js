// The iterations of every GPU, as testbed/report/page/timeline.py writes them.

import { decodeColumn } from "./codec.js";

const COLUMNS = ["iteration", "disturbed", "start", "compute", "straggler", "exposed", "end"];

/** Lanes [{job, row, first, last}] and columns by name; lane rows are `first` to `last` (exclusive), in order of time. */
export class Timeline {
  constructor(view) {
    let first = 0;
    this.lanes = view.lanes.map(([job, row, count]) => {
      const lane = { job, row, first, last: first + count };
      first += count;
      return lane;
    });
    this.until = view.until_s;
    for (const name of COLUMNS) this[name] = decodeColumn(view[name]);
  }

  /** Mean begin and duration of each iteration of `job` over its GPUs: [{iteration, start, duration}]. */
  iterationsOf(job) {
    const found = new Map();
    this.lanes.filter((lane) => lane.job === job).forEach(({ first, last }) => {
      for (let i = first; i < last; i++) {
        const key = this.iteration[i];
        const entry = found.get(key) ?? { iteration: key, start: 0, duration: 0, count: 0, disturbed: false };
        entry.start += this.start[i];
        entry.duration += this.end[i] - this.start[i];
        entry.count += 1;
        entry.disturbed ||= Boolean(this.disturbed?.[i]);
        found.set(key, entry);
      }
    });
    const rows = [...found.values()].map((each) => ({ ...each, start: each.start / each.count, duration: each.duration / each.count }));
    return rows.sort((a, b) => a.start - b.start);
  }

  /** The iteration in `row` at `time`: {lane, index}; null if there is none. */
  find(row, time) {
    for (const lane of this.lanes) {
      if (lane.row !== row) continue;
      for (let i = lane.first; i < lane.last; i++) if (this.start[i] <= time && time <= this.end[i]) return { lane, index: i };
    }
    return null;
  }

  /** Cause -> [row, start, length] one after the other, of what is seen between `from` and `to`; `shown(row)`: draw it. */
  slices(from, to, shown) {
    const found = { compute: [], straggler: [], exposed: [] };
    for (const lane of this.lanes) {
      if (!shown(lane.row)) continue;
      for (let i = lane.first; i < lane.last; i++) {
        if (this.end[i] < from || this.start[i] > to) continue;
        let at = this.start[i];
        for (const cause of ["compute", "straggler", "exposed"]) {
          const length = this[cause][i];
          if (length > 0) found[cause].push(lane.row, at, length);
          at += length;
        }
      }
    }
    return found;
  }

  /** Job -> [row, start, length]: from the first to the last iteration of each lane. */
  holds(shown) {
    const found = new Map();
    for (const lane of this.lanes) {
      if (!shown(lane.row) || lane.first === lane.last) continue;
      const list = found.get(lane.job) ?? [];
      list.push(lane.row, this.start[lane.first], this.end[lane.last - 1] - this.start[lane.first]);
      found.set(lane.job, list);
    }
    return found;
  }
}
