// The map of starts, behind the picture: each point of the disc is a W(0), coloured by what it ends in.
/** @import { Selection, Data, Matrix } from "./types.js" */
/** @import { State } from "./state.js" */
/** @import { View } from "./view.js" */
/** @import { StartMap } from "./starts.js" */
import { normOf } from "./look.js";
import { solveNorm } from "./norms.js";
import { growStartMap, newStartMap } from "./starts.js";
import { dot, fromDisc } from "./view.js";

const CELLS = 61, BUDGET = 3000;
// Fills that colour-blind readers can tell apart; what is proved is darker than what is only seen.
const FILLS = [[86, 180, 233], [230, 159, 0], [0, 158, 115], [204, 121, 167], [240, 228, 66], [0, 114, 178], [213, 94, 0], [150, 150, 150]];
const OPACITY = [30, 75, 125];

/** @typedef {{map: StartMap, canvas: HTMLCanvasElement, image: string, left: boolean}} GrowingMap */

/**
 * The W(0) nearest to zero whose W(0) z is drawn at these pixels.
 * @param {State} state
 * @param {View} view
 * @param {number[]} at
 * @param {Float64Array | number[]} [base] of which it keeps what the query does not see
 * @returns {Float64Array}
 */
export function startAt(state, view, at, base) {
  const z = state.data.z[state.focus], d = z.length;
  const square = dot(z, z) || 1;
  const target = fromDisc(view, at[0], at[1]);
  const W = base ? Float64Array.from(base) : new Float64Array(d * d);
  for (let a = 0; a < d; a++) {
    let now = 0;
    for (let b = 0; b < d; b++) now += W[a * d + b] * z[b];
    for (let b = 0; b < d; b++) W[a * d + b] += ((target[a] - now) * z[b]) / square;
  }
  return W;
}

/** @param {State} state @param {View} view @returns {GrowingMap} */
export function beginMap(state, view) {
  const starts = Array.from({ length: CELLS * CELLS }, (_, cell) => {
    const at = [cell % CELLS, Math.floor(cell / CELLS)].map((k) => ((2 * k + 1) / CELLS - 1) * view.radius);
    return Math.hypot(...at) > view.radius ? null : startAt(state, view, at);
  });
  const solve = (/** @type {Data} */ data, /** @type {Selection} */ chosen) =>
    solveNorm(data, chosen, normOf(state.settings));
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = CELLS;
  return { map: newStartMap(state.data, state.settings, starts, BUDGET, solve), canvas, image: "", left: true };
}

/** Compute for some milliseconds, and draw what is known. @param {GrowingMap} own @param {number} milliseconds */
export function growMap(own, milliseconds) {
  const end = performance.now() + milliseconds;
  while (own.left && performance.now() < end) own.left = growStartMap(own.map, 8);
  const pen = own.canvas.getContext("2d");
  if (!pen) return;
  const pixels = pen.createImageData(CELLS, CELLS);
  own.map.end.forEach((selection, cell) => {
    if (selection < 0) return;
    const colour = FILLS[selection % FILLS.length];
    pixels.data.set([...colour, OPACITY[own.map.level[cell]]], 4 * cell);
  });
  pen.putImageData(pixels, 0, 0);
  own.image = own.canvas.toDataURL();
}

/** The colours of the selections that starts lead to. @param {GrowingMap} own @returns {{selection: Selection, colour: string, share: number}[]} */
export function mapLegend(own) {
  const counts = own.map.selections.map(() => 0);
  own.map.end.forEach((k) => { if (k >= 0) counts[k]++; });
  const total = counts.reduce((a, b) => a + b, 0);
  return own.map.selections.map((selection, k) => ({
    selection, colour: `rgb(${FILLS[k % FILLS.length].join(" ")})`, share: counts[k] / total,
  }));
}
