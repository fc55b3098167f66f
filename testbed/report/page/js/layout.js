// Where the parts of a fabric stand: hosts at the bottom, ToRs above them, then aggregation and core.

const TIER_GAP = 150;
const TIERS = ["tor", "agg", "core"];

/** The middle of each host's ToRs decides its place, so that cables cross as little as possible. */
function hostOrder(fabric, torPlace) {
  const towards = new Map();
  for (const link of fabric.links) {
    if (torPlace.has(link.target)) towards.set(link.source, torPlace.get(link.target));
  }
  const weight = (host) => {
    const places = host.ports.map((port) => towards.get(port)).filter((place) => place !== undefined);
    return places.length ? places.reduce((a, b) => a + b, 0) / places.length : 0;
  };
  return fabric.hosts.map((host, index) => [host, weight(host), index]).sort((a, b) => a[1] - b[1] || a[2] - b[2]).map(([host]) => host);
}

function addHosts(boxes, hosts, width, y) {
  const pitch = width / Math.max(1, hosts.length);
  hosts.forEach((host, index) => {
    const wide = Math.max(2, Math.min(90, pitch * 0.86));
    const x = (index + 0.5) * pitch;
    boxes.set(host.name, { name: host.name, tier: "host", x, y, width: wide, height: 26 });
    host.ports.forEach((port, place) => {
      const at = x - wide / 2 + ((place + 0.5) * wide) / host.ports.length;
      const size = Math.max(1, Math.min(5, (wide / host.ports.length) * 0.6));
      boxes.set(port, { name: port, tier: "port", x: at, y: y - 13, width: size, height: size });
    });
  });
}

/**
 * Place everything in `width` pixels.
 * Returns {boxes: Map(node -> {name, tier, x, y, width, height}), lines: [{x1, y1, x2, y2}] by link, height}.
 */
export function layoutFabric(fabric, width) {
  const tiers = TIERS.map((tier) => fabric.switches.filter((each) => each.tier === tier)).filter((each) => each.length);
  const boxes = new Map();
  const height = 40 + tiers.length * TIER_GAP + 30;
  tiers.forEach((switches, index) => {
    const pitch = width / switches.length;
    const wide = Math.max(4, Math.min(56, pitch * 0.8));
    const y = height - 30 - (index + 1) * TIER_GAP;
    switches.forEach((each, place) => {
      boxes.set(each.name, { name: each.name, tier: each.tier, x: (place + 0.5) * pitch, y, width: wide, height: 22 });
    });
  });
  const torPlace = new Map(fabric.switches.filter((each) => each.tier === "tor").map((each, place) => [each.name, place]));
  addHosts(boxes, hostOrder(fabric, torPlace), width, height - 30);
  return { boxes, lines: layoutLines(fabric, boxes, width), height, width };
}

/** Links between the same two nodes stand side by side. */
function layoutLines(fabric, boxes, width) {
  const beside = new Map();
  fabric.links.forEach((link, index) => {
    const pair = [link.source, link.target].sort().join(" ");
    beside.set(pair, [...(beside.get(pair) ?? []), index]);
  });
  const dense = fabric.links.length > 600 ? 1.2 : 2.6;
  const lines = new Array(fabric.links.length);
  for (const indices of beside.values()) {
    indices.forEach((index, place) => {
      const { source, target } = fabric.links[index];
      const [from, to] = [boxes.get(source), boxes.get(target)];
      const room = Math.min(from.width, to.width, width / 40) / Math.max(1, indices.length);
      const shift = (place - (indices.length - 1) / 2) * Math.max(0.5, Math.min(dense, room));
      lines[index] = { x1: from.x + shift, y1: from.y, x2: to.x + shift, y2: to.y, shift };
    });
  }
  return lines;
}
