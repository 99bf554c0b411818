// The plane of starts W(0) = a E₁ + b E₂, coloured by the selection that training ends in.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./training.js").Settings} Settings */
/** @typedef {import("./guarantee.js").Solver} Solver */

/**
 * @typedef {object} Plane
 * @property {Matrix} E1
 * @property {Matrix} E2
 * @property {number[]} a  a cell per pair, b by b: cell (j, k) is W(0) = a[k] E₁ + b[j] E₂
 * @property {number[]} b
 * @property {number} budget  steps per cell at most
 */

/**
 * @typedef {object} StartMap
 * @property {Int32Array} end  (b·a), index into selections; −1 where not yet computed
 * @property {Uint8Array} level  (b·a), 2 guaranteed from this start, 1 settled, 0 open
 * @property {Selection[]} selections  that were found
 * @property {number} done  cells computed
 */

/**
 * Begin a map; with "KQ" every start is factored, K and Q of the same size.
 * @param {Data} data @param {Settings} settings @param {Plane} plane @param {Solver} solve
 * @returns {StartMap}
 */
export function newStartMap(data, settings, plane, solve) {
  const cells = plane.a.length * plane.b.length;
  return { end: new Int32Array(cells).fill(-1), level: new Uint8Array(cells), selections: [], done: 0 };
}

/** Compute more cells, spread over the plane; returns whether any are left.
 * @param {StartMap} map @param {number} cells
 */
export function growStartMap(map, cells) {
  return false;
}
