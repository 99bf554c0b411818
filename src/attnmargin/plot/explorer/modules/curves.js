// Curves along training: the loss above its least value, and the angle to the direction.
/** @import { History } from "./play.js" */
/** @import { Ending } from "./prediction.js" */
import { html, svg } from "./dom.js";
import { px } from "./marks.js";
import { LAST_STEP, placeOfStep } from "./play.js";

const [WIDE, HIGH, LEFT, FOOT] = [340, 118, 44, 18];
const DECADES = Math.log10(LAST_STEP + 1);

/** The place of a step across a curve: a log scale. @param {number} step @param {number} until */
function across(step, until) {
  return LEFT + ((WIDE - LEFT - 16) * Math.log10(step + 1)) / Math.log10(until + 1);
}

/**
 * 1 − cosine of two matrices, without cancellation.
 * @param {Float64Array} W
 * @param {Float64Array} of
 */
export function distance(W, of) {
  const [a, b] = [Math.hypot(...W), Math.hypot(...of)];
  if (!(a > 0 && b > 0)) return NaN;
  let sum = 0;
  for (let k = 0; k < W.length; k++) sum += (W[k] / a - of[k] / b) ** 2;
  return sum / 2;
}

/** @param {string} title @param {string} words */
function chart(title, words) {
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "curve", role: "img", "aria-label": words });
  const element = html("figure", { class: "curves" }, html("figcaption", {}, title), picture);
  return { element, picture };
}

/**
 * The two charts; `update` draws them up to a step.
 * @returns {{element: HTMLElement, update: (histories: History[], targets: (Float64Array | null)[], endings: Ending[], step: number) => void}}
 */
export function makeCurves() {
  const loss = chart("Loss above its least value", "loss along training, on log scales");
  const angle = chart("Distance from the predicted direction, 1 − cosine", "distance along training, on log scales");
  return {
    element: html("div", { class: "charts" }, loss.element, angle.element),
    update(histories, targets, endings, step) {
      const until = Math.max(100, ...histories.map((own) => own.run.step));
      const losses = histories.map((own) => own.excess.map((x) => x / Math.LN10));
      const angles = histories.map((own, r) => {
        const of = targets[r];
        return own.Ws.map((W) => (of ? Math.log10(distance(W, of)) : NaN));
      });
      const marks = endings.length === 1 ? endings[0] : null;
      loss.picture.innerHTML = curveMarkup(histories, losses, until, step, marks);
      angle.picture.innerHTML = curveMarkup(histories, angles, until, step, marks);
    },
  };
}

/**
 * @param {History[]} histories
 * @param {number[][]} values in decades
 * @param {number} until
 * @param {number} step
 * @param {Ending | null} ending
 */
function curveMarkup(histories, values, until, step, ending) {
  const every = values.flat().filter((x) => Number.isFinite(x));
  const high = Math.ceil(Math.max(...every, -1)), low = Math.min(Math.floor(Math.min(...every, 0)), high - 1);
  const y = (/** @type {number} */ v) => 4 + ((HIGH - FOOT - 8) * (high - v)) / (high - low);
  const parts = [axes(until, low, high, y)];
  if (ending && ending.verdict !== "undecided") {
    // From zero, all tokens are alike at first.
    const alike = !ending.settled && !histories[0].Ws[0].some(Boolean);
    parts.push(mark(alike ? -1 : ending.settled, until, "settles", "settled"), mark(ending.since, until, "certain", "since"));
  }
  histories.forEach((own, r) => {
    const points = own.steps.map((s, k) => [across(s, until), y(values[r][k])]).filter((p) => Number.isFinite(p[1]));
    parts.push(`<polyline class="trail run${r}" points="${points.map((p) => `${px(p[0])},${px(p[1])}`).join(" ")}"/>`);
    const at = values[r][placeOfStep(own.steps, step)];
    if (Number.isFinite(at)) parts.push(`<circle class="now run${r}" cx="${px(across(step, until))}" cy="${px(y(at))}" r="3.5"/>`);
  });
  return parts.join("");
}

/** @param {number} until @param {number} low @param {number} high @param {(v: number) => number} y */
function axes(until, low, high, y) {
  const base = HIGH - FOOT;
  const parts = [`<path class="axis" d="M${LEFT},2V${base}H${WIDE - 4}"/>`];
  for (let k = 0; k <= DECADES && 10 ** k <= until; k++) {
    parts.push(tick(across(10 ** k, until), HIGH - 5, "middle", k < 4 ? String(10 ** k) : `10${raised(k)}`));
  }
  for (const v of new Set([high, Math.round((low + high) / 2), low])) {
    parts.push(tick(LEFT - 5, y(v) + 3, "end", v === 0 ? "1" : `10${raised(v)}`));
  }
  return parts.join("");
}

/** @param {number} x @param {number} y @param {string} anchor @param {string} text */
function tick(x, y, anchor, text) {
  return `<text class="tick" x="${px(x)}" y="${px(y)}" text-anchor="${anchor}">${text}</text>`;
}

/** A number as superscript. @param {number} k */
function raised(k) {
  return [...String(k)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("");
}

/** @param {number} step @param {number} until @param {string} words @param {string} kind */
function mark(step, until, words, kind) {
  if (step < 0 || step > until) return "";
  const x = across(step, until), late = x > 0.75 * WIDE;
  const at = `x="${px(late ? x - 4 : x + 4)}" y="${kind === "settled" ? 12 : 24}" text-anchor="${late ? "end" : "start"}"`;
  return `<line class="mark ${kind}" x1="${px(x)}" x2="${px(x)}" y1="2" y2="${HIGH - FOOT}"/>` +
    `<text class="tick mark" ${at}>${words}</text>`;
}
