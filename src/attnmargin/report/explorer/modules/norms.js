// The margin problem in other norms: the direction of each optimiser, with a certificate.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./frobenius.js").Solution} Solution */
/** @typedef {"fro" | "nuc" | "max" | "spectral" | number} Norm  a number p from 1.1 to 10: entrywise ℓp */

/**
 * Solve min ‖W‖ over the rows of a selection in a norm. W need not be unique for nuc, max, spectral.
 * @param {Data} data
 * @param {Selection} selection
 * @param {Norm} norm
 * @returns {Solution}
 */
export function solveNorm(data, selection, norm) {
  void data;
  void selection;
  void norm;
  throw new Error("to come");
}

/**
 * Bracket min ‖W‖ by any W and any multipliers: bᵀλ / ‖Aᵀλ‖_dual ≤ min ‖W‖.
 * @param {Rows} rows
 * @param {number[][]} queries
 * @param {Norm} norm
 * @param {Matrix} W
 * @param {Float64Array} dual
 * @returns {{gap: number, primal: number, lower: number, upper: number}}  primal: the worst
 *   violation of a row; upper: ‖W‖, scaled up until all rows hold
 */
export function certify(rows, queries, norm, W, dual) {
  void rows;
  void queries;
  void norm;
  void W;
  void dual;
  throw new Error("to come");
}
