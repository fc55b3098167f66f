// Colours that the colour-blind can tell apart: loads by lightness (inferno), causes and jobs by Okabe and Ito's palette.

const LOADS_LIGHT = ["#d3d7dd", "#f5b638", "#dd513a", "#932667", "#2b0a4f"];
const LOADS_DARK = ["#454b54", "#8a3a86", "#dd513a", "#fca50a", "#fcffa4"];
const JOBS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900"];

/** What an allocated GPU does; `color` is the same in both themes. */
export const CAUSES = [
  { key: "compute", word: "compute", color: "#0072b2" },
  { key: "straggler", word: "waiting for a peer", color: "#f0e442" },
  { key: "exposed", word: "exposed communication", color: "#d55e00" },
  { key: "start", word: "waiting to start", color: "#999999" },
];

let onPaper = false;
addEventListener("beforeprint", () => { onPaper = true; });
addEventListener("afterprint", () => { onPaper = false; });

/** Whether the reader asked for dark pages; paper is always white. */
export function isDark() {
  return matchMedia("(prefers-color-scheme: dark)").matches && !onPaper;
}

/** Call `action` when the reader's theme changes, and before and after a dark page is printed. */
export function onTheme(action) {
  const theme = matchMedia("(prefers-color-scheme: dark)");
  theme.addEventListener("change", action);
  for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => theme.matches && action());
}

/** Colour of text, lines and grids of plots. */
export function inkColors() {
  return isDark()
    ? { text: "#e8e6e3", grid: "#3a3f46", line: "#9aa0a8", ground: "#16181c", node: "#2a2f36", border: "#8a919b" }
    : { text: "#1c1c1c", grid: "#e3e3e3", line: "#767676", ground: "#ffffff", node: "#f4f5f7", border: "#8a919b" };
}

function channels(color) {
  return [1, 3, 5].map((place) => parseInt(color.slice(place, place + 2), 16));
}

/** Colour of a load; 0: nothing, 1: all of the link's rate. */
export function loadColor(share, dark = isDark()) {
  const stops = dark ? LOADS_DARK : LOADS_LIGHT;
  const place = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const below = Math.min(stops.length - 2, Math.floor(place));
  const [from, to] = [channels(stops[below]), channels(stops[below + 1])];
  const mixed = from.map((value, index) => Math.round(value + (place - below) * (to[index] - value)));
  return `rgb(${mixed.join(",")})`;
}

/** Colour of a job by its index; -1: bytes of no known job. */
export function jobColor(index) {
  if (index < 0) return "#8f8f8f";
  if (index < JOBS.length) return JOBS[index];
  const hue = (index * 137.508) % 360;
  return `hsl(${hue.toFixed(0)} 60% ${[42, 62, 52][index % 3]}%)`;
}

/** Colour of the n-th scheduler in plots that compare them. */
export function runColor(index) {
  return jobColor(index % JOBS.length);
}
