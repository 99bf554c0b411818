// The controls of a run: method, power, step and loss.
/** @import { Data } from "./types.js" */
/** @import { Settings } from "./state.js" */
import { html, selectField, sliderField } from "./dom.js";
import { defaultSettings, quickSettings } from "./state.js";

/** @type {[string, string, Partial<Settings>][]} */
const METHOD_CHOICES = [
  ["gd", "gradient descent", { method: "gd", parameter: "W" }],
  ["KQ", "gradient descent on (K, Q)", { method: "gd", parameter: "KQ" }],
  ["mirror", "ℓp mirror descent", { method: "mirror", parameter: "W" }],
  ["max", "sign descent (like Adam)", { method: "steepest", parameter: "W", norm: "max" }],
  ["spectral", "spectral descent (like Muon)", { method: "steepest", parameter: "W", norm: "spectral" }],
];
/** @type {[string, string][]} */
const LOSS_CHOICES = [["logistic", "logistic"], ["exponential", "exponential"], ["linear", "linear"], ["squared", "squared"]];
const [P_LOW, P_HIGH] = [1.1, 10];

/** @param {Settings} settings */
function choiceOf(settings) {
  if (settings.parameter === "KQ") return "KQ";
  return settings.method === "steepest" ? settings.norm : settings.method;
}

/**
 * Controls of one run.
 * @param {string} title
 * @param {(part: Partial<Settings>) => void} change
 * @returns {{element: HTMLElement, update: (settings: Settings, data: Data) => void}}
 */
export function makeControls(title, change) {
  const method = selectField("method", METHOD_CHOICES.map(([key, words]) => [key, words]), (key) => {
    const found = METHOD_CHOICES.find((own) => own[0] === key);
    if (found) change(found[2]);
  });
  const power = sliderField("p", { min: 0, max: 1, step: 0.01 },
    (x) => powerAt(x).toString(), (x) => change({ p: powerAt(x) }));
  const rate = sliderField("step", { min: -3, max: 1, step: 0.1 },
    (x) => rateAt(x).toString(), (x) => change({ lr: rateAt(x) }));
  const loss = selectField("loss", LOSS_CHOICES, (name) => change({ loss: name }));
  const unit = /** @type {HTMLInputElement} */ (html("input", { type: "checkbox" }));
  unit.addEventListener("change", () => change({ normalize: unit.checked }));
  const check = html("label", { class: "check" }, unit, " steps of equal length");
  const element = html("fieldset", { class: "controls" }, html("legend", {}, title),
    method.element, power.element, rate.element, loss.element, check);
  return {
    element,
    update(settings, data) {
      METHOD_CHOICES.forEach(([, , part], k) => {
        const own = { ...defaultSettings(), ...part };
        method.input.options[k].disabled = quickSettings(data, own) !== own;
      });
      method.input.value = choiceOf(settings);
      power.element.hidden = settings.method !== "mirror";
      power.show(Math.log(settings.p / P_LOW) / Math.log(P_HIGH / P_LOW), String(settings.p));
      rate.show(Math.log10(settings.lr), String(settings.lr));
      if (![...loss.input.options].some((own) => own.value === settings.loss)) loss.input.append(new Option(settings.loss));
      loss.input.value = settings.loss;
      unit.checked = settings.normalize;
    },
  };
}

/** @param {number} x from 0 to 1 */
function powerAt(x) {
  const p = P_LOW * (P_HIGH / P_LOW) ** x;
  return p < 3 ? Math.round(p * 20) / 20 : Math.round(p * 4) / 4;
}

/** @param {number} x */
function rateAt(x) {
  return Number((10 ** x).toPrecision(2));
}
