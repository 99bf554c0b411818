// The Frobenius margin problem: min ‖W‖ over rows ⟨left zᵀ, W⟩ ≥ 1.

/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./types.js").Matrix} Matrix */

/**
 * @typedef {object} Solution
 * @property {"optimal" | "infeasible" | "inaccurate"} status  inaccurate: rounding hides the answer
 * @property {Matrix} W  of NaN if infeasible
 * @property {Float64Array} dual  a multiplier per row; if infeasible, rows that add up to 0 ≥ 1
 * @property {number} value  ‖W‖; NaN if infeasible
 * @property {number} margin  1/‖W‖; 0 if infeasible
 * @property {boolean[]} support  rows that hold with equality; if infeasible, those of the proof
 * @property {number} gap  relative duality gap; infinite if infeasible
 */

/**
 * Solve min ‖W‖_F over the rows exactly.
 * @param {Rows} rows
 * @param {number[][]} queries  data.z
 * @returns {Solution}
 */
export function solveRows(rows, queries) {
  void rows;
  void queries;
  throw new Error("to come");
}

/**
 * @typedef {object} Demand  one side of a contradiction
 * @property {number} sequence
 * @property {number} token  the token that must win
 * @property {number} other  the token that must lose
 * @property {number} weight  its multiplier; the weighted rows add up to zero; largest first
 */

/**
 * The rows of a contradiction: which sequences want which tokens over which.
 * @param {Rows} rows
 * @param {Float64Array} dual  of an infeasible solution
 * @returns {Demand[]}
 */
export function contradiction(rows, dual) {
  const named = rows.sequence.map((sequence, m) => ({
    sequence, token: rows.token[m], other: rows.other[m], weight: dual[m],
  }));
  return named.filter((row) => row.weight > 0).sort((a, b) => b.weight - a.weight);
}
