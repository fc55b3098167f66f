// Pictures made of SVG shapes: shown on the page, and taken away as a file, from the same list.

import { inkColors, onTheme } from "./colors.js";
import { make, scrollBox } from "./dom.js";
import { downloadButtons, SVG } from "./download.js";
import { svgFile, svgTag } from "./svg.js";

const SVG_SPACE = "http://www.w3.org/2000/svg";
const PAPER = { text: "#1c1c1c", grid: "#e3e3e3", line: "#767676", ground: "#ffffff" };

function shapeElement(tag, attributes, text, hover) {
  const element = document.createElementNS(SVG_SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.append(String(text));
  if (hover) {
    const title = document.createElementNS(SVG_SPACE, "title");
    title.append(hover);
    element.append(title);
  }
  return element;
}

/**
 * Show a picture in `element`, drawn again when the theme changes.
 * picture: {title, name (of the file), width, height, shapes(ink) -> [[tag, attributes, text, hover]]}.
 */
export function showPicture(element, picture, ...buttons) {
  const room = make("div");
  const draw = () => {
    const { width, height } = picture;
    const size = { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": picture.title, class: "picture" };
    const svg = shapeElement("svg", size);
    svg.append(...picture.shapes(inkColors()).map((shape) => shapeElement(...shape)));
    room.replaceChildren(svg);
  };
  const file = () => svgFile(picture.width, picture.height, picture.shapes(PAPER).map(([tag, attributes, text]) => svgTag(tag, attributes, text)));
  element.append(
    make("div", { class: "caption" }, make("h3", {}, picture.title), buttons.flat(), downloadButtons(["SVG", `${picture.name}.svg`, SVG, file])),
    scrollBox(picture.title, room),
  );
  draw();
  onTheme(draw);
}
