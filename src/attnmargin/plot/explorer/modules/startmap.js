// The map of starts, behind the picture: each point of the disc is a W(0), coloured by what it ends in.
/** @import { Selection } from "./types.js" */
/** @import { State } from "./state.js" */
/** @import { View } from "./view.js" */
/** @import { StartMap } from "./starts.js" */
import { isProvable } from "./guarantee.js";
import { solveNorm } from "./norms.js";
import { growStartMap, newStartMap } from "./starts.js";
import { dot, fromDisc } from "./view.js";

// Finer and finer grids: the first is there at once.
const GRIDS = [13, 29, 61], BUDGET = 3000;
// Fills that colour-blind readers can tell apart; what is proved is darker than what is only seen.
const FILLS = [[86, 180, 233], [230, 159, 0], [0, 158, 115], [204, 121, 167], [240, 228, 66], [0, 114, 178], [213, 94, 0], [150, 150, 150]];
const OPACITY = [30, 75, 125];

/**
 * `image` shows the last grid that is complete; `map` is the one that grows, `known` that of the image.
 * @typedef {{state: State, view: View, level: number, map: StartMap, known: StartMap, image: string, left: boolean}} GrowingMap
 */

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
  const map = gridMap(state, view, GRIDS[0]);
  return { state, view, level: 0, map, known: map, image: "", left: true };
}

/** @param {State} state @param {View} view @param {number} cells of a side */
function gridMap(state, view, cells) {
  const starts = Array.from({ length: cells * cells }, (_, cell) => {
    const at = [cell % cells, Math.floor(cell / cells)].map((k) => ((2 * k + 1) / cells - 1) * view.radius);
    return Math.hypot(...at) > view.radius ? null : startAt(state, view, at);
  });
  return newStartMap(state.data, state.settings, starts, BUDGET, solveNorm);
}

/** Compute for some milliseconds; returns whether there is a new image. @param {GrowingMap} own @param {number} milliseconds */
export function growMap(own, milliseconds) {
  const end = performance.now() + milliseconds;
  let left = true;
  while (left && performance.now() < end) left = growStartMap(own.map, 4);
  if (left) return false;
  own.known = own.map;
  own.image = painted(own.map, GRIDS[own.level]);
  own.level++;
  own.left = own.level < GRIDS.length;
  if (own.left) own.map = gridMap(own.state, own.view, GRIDS[own.level]);
  return true;
}

/** 2 is proved, 1 seen; a start far out has all attention on its tokens long before they change: where there are
 * proofs, what has none is open. @param {StartMap} map @param {number} cell */
function levelOf({ level, settings }, cell) {
  return level[cell] === 1 && isProvable(settings) ? 0 : level[cell];
}

/** @param {StartMap} map @param {number} cells @returns {string} a data URL */
function painted(map, cells) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = cells;
  const pen = canvas.getContext("2d");
  if (!pen) return "";
  const pixels = pen.createImageData(cells, cells);
  map.end.forEach((selection, cell) => {
    if (selection < 0) return;
    pixels.data.set([...FILLS[selection % FILLS.length], OPACITY[levelOf(map, cell)]], 4 * cell);
  });
  pen.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

/** The colours of the selections that starts lead to, as far as they have settled. @param {GrowingMap} own @returns {{selection: Selection, colour: string, share: number}[]} */
export function mapLegend(own) {
  const counts = own.known.selections.map(() => 0);
  own.known.end.forEach((k, cell) => { if (levelOf(own.known, cell)) counts[k]++; });
  const total = own.known.end.filter((k) => k >= 0).length;
  return own.known.selections.map((selection, k) => ({
    selection, colour: `rgb(${FILLS[k % FILLS.length].join(" ")})`, share: total ? counts[k] / total : 0,
  }));
}
