// Elements made by hand. Texts are always text, never markup.

/** make("p", {class: "facts", onclick: f}, "text", element): attributes that begin with "on" are listeners. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A section with a heading; `note` is a sentence under it. */
export function section(id, title, note = "") {
  return make("section", { id }, make("h2", {}, title), note ? make("p", { class: "facts" }, note) : null);
}

/** A button of one word or two. */
export function button(text, action, attributes = {}) {
  return make("button", { type: "button", onclick: action, ...attributes }, text);
}

/** A labelled <select>; options are [value, text]; `action` gets the chosen value. */
export function select(label, options, value, action) {
  const box = make(
    "select",
    { "aria-label": label, onchange: (event) => action(event.target.value) },
    options.map(([each, text]) => make("option", { value: each, selected: String(each) === String(value) }, text)),
  );
  return { element: make("label", { class: "control" }, `${label} `, box), box };
}

/** A box in which wide content scrolls; reachable by keyboard. */
export function scrollBox(label, ...children) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children);
}

/** Replace what is in `element`. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}
