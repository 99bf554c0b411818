// Small helpers for elements of HTML and SVG.

const SVG_SPACE = "http://www.w3.org/2000/svg";

/**
 * Make an HTML element.
 * @param {string} tag
 * @param {Record<string, string | number | boolean>} [attributes] false leaves one out
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function html(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  setAttributes(made, attributes);
  made.append(...children);
  return made;
}

/**
 * Make an SVG element.
 * @param {string} tag
 * @param {Record<string, string | number | boolean>} [attributes]
 * @param {...Node} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG_SPACE, tag);
  setAttributes(made, attributes);
  made.append(...children);
  return /** @type {SVGElement} */ (made);
}

/**
 * Set attributes; false removes one, true sets an empty one.
 * @param {Element} element
 * @param {Record<string, string | number | boolean>} attributes
 */
export function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * Escape text that is put into markup.
 * @param {string} text
 */
export function escaped(text) {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/**
 * A button that calls a function.
 * @param {string} text
 * @param {() => void} act
 * @param {Record<string, string | number | boolean>} [attributes]
 * @returns {HTMLButtonElement}
 */
export function button(text, act, attributes = {}) {
  const made = /** @type {HTMLButtonElement} */ (html("button", { type: "button", ...attributes }, text));
  made.addEventListener("click", act);
  return made;
}

/**
 * A labelled choice.
 * @param {string} label
 * @param {[string, string][]} options value and words
 * @param {(value: string) => void} choose
 * @returns {{element: HTMLElement, input: HTMLSelectElement}}
 */
export function selectField(label, options, choose) {
  const input = /** @type {HTMLSelectElement} */ (html("select", {}));
  for (const [value, words] of options) input.append(html("option", { value }, words));
  input.addEventListener("change", () => choose(input.value));
  return { element: html("label", { class: "field" }, html("span", {}, label), input), input };
}

/**
 * A labelled slider with the value in words beside it.
 * @param {string} label
 * @param {{min: number, max: number, step: number}} range
 * @param {(value: number) => string} words
 * @param {(value: number) => void} slide
 * @returns {{element: HTMLElement, input: HTMLInputElement, show: (value: number, text?: string) => void}}
 */
export function sliderField(label, range, words, slide) {
  const input = /** @type {HTMLInputElement} */ (html("input", { type: "range", ...range }));
  const output = html("output", {});
  const tell = (text = words(Number(input.value))) => {
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  input.addEventListener("input", () => { tell(); slide(Number(input.value)); });
  const element = html("label", { class: "field" }, html("span", {}, label), input, output);
  const show = (/** @type {number} */ value, /** @type {string | undefined} */ text) => { input.value = String(value); tell(text); };
  return { element, input, show };
}
