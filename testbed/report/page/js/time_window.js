// The span of time that plots on one axis show together.

/** Holds {from, to} in seconds within 0 to `end`; tells listeners when it changes. */
export class TimeWindow {
  constructor(from, to, end) {
    this.end = end;
    this.first = [from, to];
    this.listeners = [];
    this.from = from;
    this.to = to;
  }

  onChange(action) {
    this.listeners.push(action);
  }

  set(from, to) {
    const length = Math.max(Math.min(1e-3, this.end / 100), Math.min(this.end, to - from));
    const start = Math.max(0, Math.min(from, this.end - length));
    if (Math.abs(start - this.from) < 1e-9 && Math.abs(start + length - this.to) < 1e-9) return;
    [this.from, this.to] = [start, start + length];
    for (const action of this.listeners) action(this.from, this.to);
  }

  zoom(factor) {
    const [middle, half] = [(this.from + this.to) / 2, ((this.to - this.from) / 2) * factor];
    this.set(middle - half, middle + half);
  }

  move(share) {
    const step = (this.to - this.from) * share;
    this.set(this.from + step, this.to + step);
  }

  reset() {
    this.set(...this.first);
  }
}
