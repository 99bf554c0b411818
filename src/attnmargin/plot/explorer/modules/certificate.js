// Norms of W, and what proves that W is the shortest, computed apart from the solvers.

import { singularValues } from "./algebra.js";

/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {"fro" | "nuc" | "max" | "spectral" | number} Norm  a number p from 1.1 to 10: entrywise ℓp */

const DUAL = /** @type {const} */ ({ fro: "fro", nuc: "spectral", spectral: "nuc", max: 1 });
// Units in the last place of |a|ᵀ|W| by which the value of a row may be off, and by which rounding
// W may change the value of the most demanding row.
const [OFF, ROUNDED] = [8, 2];

/** The entrywise ℓp norm. @param {Float64Array} x @param {number} p */
function entrywise(x, p) {
  const largest = x.reduce((most, c) => Math.max(most, Math.abs(c)), 0);
  if (!(largest > 0 && largest < Infinity && p < Infinity)) return largest;
  return largest * x.reduce((sum, c) => sum + Math.abs(c / largest) ** p, 0) ** (1 / p);
}

/**
 * ‖W‖ of a square matrix.
 * @param {Norm} norm
 * @param {Matrix} W
 * @returns {number}
 */
export function normOf(norm, W) {
  if (norm === "fro") return Math.hypot(...W);
  if (norm === "max") return entrywise(W, Infinity);
  if (norm === "nuc") return singularValues(W).reduce((sum, s) => sum + s, 0);
  if (norm === "spectral") return Math.max(0, ...singularValues(W));
  return entrywise(W, norm);
}

/** max ⟨W, V⟩ over ‖V‖ ≤ 1. @param {Norm} norm @param {Matrix} W */
function dualNormOf(norm, W) {
  return normOf(typeof norm === "number" ? norm / (norm - 1) : DUAL[norm], W);
}

/**
 * ⟨left_m zᵀ, W⟩ of every row, and the size that its rounding is relative to.
 * @param {Rows} rows
 * @param {number[][]} queries
 * @param {Matrix} W
 */
export function rowValues(rows, queries, W) {
  return rows.left.map((left, m) => {
    const z = queries[rows.query[m]];
    let [value, size] = [0, 0];
    for (let c = 0; c < left.length; c++) {
      for (let e = 0; e < z.length; e++) {
        const term = left[c] * W[c * z.length + e] * z[e];
        value += term;
        size += Math.abs(term);
      }
    }
    return { value, size };
  });
}

/**
 * Aᵀλ = Σ λ_m left_m zᵀ.
 * @param {Rows} rows
 * @param {number[][]} queries
 * @param {Float64Array} dual
 * @returns {Matrix}
 */
export function adjoint(rows, queries, dual) {
  const d = queries[0].length;
  const V = new Float64Array(d * d);
  rows.left.forEach((left, m) => {
    const z = queries[rows.query[m]];
    if (dual[m] === 0) return;
    for (let c = 0; c < d; c++) for (let e = 0; e < d; e++) V[c * d + e] += dual[m] * left[c] * z[e];
  });
  return V;
}

/**
 * @typedef {object} Certificate
 * @property {number} gap  (upper − lower) / upper
 * @property {number} primal  worst violation of a row beyond rounding
 * @property {number} lower  no W is shorter than this
 * @property {number} upper  ‖W‖, scaled up until all rows hold
 * @property {number} rounding  the gap that rounding the entries of W alone can cause
 */

/**
 * Bracket min ‖W‖ by any W and any multipliers λ ≥ 0: Σλ / ‖Aᵀλ‖_dual ≤ min ‖W‖.
 * @param {Rows} rows
 * @param {number[][]} queries
 * @param {Norm} norm
 * @param {Matrix} W
 * @param {Float64Array} dual  negative ones count as zero
 * @returns {Certificate}
 */
export function certify(rows, queries, norm, W, dual) {
  const valid = dual.map((x) => Math.max(x, 0));
  const gain = valid.reduce((sum, x) => sum + x, 0);
  const lower = gain > 0 ? gain / dualNormOf(norm, adjoint(rows, queries, valid)) : 0;
  let [lift, primal, demand] = [1, 0, 0];
  for (const { value, size } of rowValues(rows, queries, W)) {
    const noise = OFF * Number.EPSILON * size;
    lift = value > noise ? Math.max(lift, 1 / value) : Infinity;
    primal = Math.max(primal, 1 - value - noise);
    if (1 - value >= -noise) demand = Math.max(demand, size);
  }
  const upper = lift < Infinity ? normOf(norm, W) * lift : Infinity;
  const gap = upper < Infinity ? Math.abs(upper - lower) / (upper || 1) : Infinity;
  return { gap, primal, lower, upper, rounding: ROUNDED * Number.EPSILON * demand };
}
