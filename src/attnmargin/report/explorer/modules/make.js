// Elements with attributes and children, for the scenes of words and graphs.

const MAKE_SVG = "http://www.w3.org/2000/svg";

/** @typedef {Record<string, string | number>} MakeAttributes */

/** @template {Element} E @param {E} made @param {MakeAttributes} attributes @param {(Node | string)[]} inside */
function makeFill(made, attributes, inside) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...inside);
  return made;
}

/** Make an HTML element.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {MakeAttributes} [attributes] @param {...(Node | string)} inside */
export function makeElement(tag, attributes = {}, ...inside) {
  return makeFill(document.createElement(tag), attributes, inside);
}

/** Make an SVG element.
 * @param {string} tag @param {MakeAttributes} [attributes] @param {...(Node | string)} inside */
export function makeSvg(tag, attributes = {}, ...inside) {
  return makeFill(document.createElementNS(MAKE_SVG, tag), attributes, inside);
}

/** Make a button.
 * @param {string} text @param {MakeAttributes} attributes @param {() => void} act */
export function makeButton(text, attributes, act) {
  const button = makeElement("button", { type: "button", ...attributes }, text);
  button.addEventListener("click", act);
  return button;
}
