// The Frobenius margin problem: min ‖W‖ over rows ⟨left zᵀ, W⟩ ≥ 1.

import { INFEASIBLE, SOLVED, advance, emptyBasis, isTight, system } from "./activeset.js";
import { certify } from "./certificate.js";

/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./activeset.js").System} System */
/** @typedef {import("./activeset.js").Basis} Basis */

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

// Largest gap and violation of an answer that is called optimal. A proof must cancel up to this
// share of the norm that its most demanding row needs by itself.
const [EXACT, CANCELS] = [1e-12, 64 * Number.EPSILON];

/**
 * Write left ⊗ z as one vector per row, and scale.
 * @param {Rows} rows
 * @param {number[][]} queries
 */
export function vectorRows(rows, queries) {
  const d = queries[0].length;
  const A = new Float64Array(rows.left.length * d * d);
  rows.left.forEach((left, m) => {
    const z = queries[rows.query[m]];
    for (let c = 0; c < d; c++) for (let e = 0; e < d; e++) A[(m * d + c) * d + e] = left[c] * z[e];
  });
  return system(d * d, A, new Float64Array(rows.left.length).fill(1));
}

/** Whether the rows of a proof add up to 0 ≥ 1. @param {System} P @param {Basis} S */
function cancels({ D, A, b }, { k, row, dual }) {
  const total = new Float64Array(D);
  let [gain, single] = [0, 0];
  for (let a = 0; a < k; a++) {
    const own = A.subarray(row[a] * D, row[a] * D + D);
    own.forEach((x, c) => { total[c] += dual[a] * x; });
    gain += dual[a] * b[row[a]];
    if (dual[a] > 0) single = Math.max(single, b[row[a]] / (Math.hypot(...own) || Infinity));
  }
  return Math.hypot(...total) * single <= CANCELS * gain;
}

/** The answer to an infeasible problem, from the basis that proves it. @param {System} P @param {Basis} S */
function contradicted(P, S) {
  const dual = new Float64Array(P.b.length);
  for (let a = 0; a < S.k; a++) dual[S.row[a]] = S.dual[a] / (P.length[S.row[a]] || 1);
  const sum = dual.reduce((total, x) => total + x, 0);
  const W = new Float64Array(P.D).fill(NaN);
  const support = Array.from(dual, (x) => x > 0);
  /** @type {"infeasible" | "inaccurate"} */
  const status = cancels(P, S) ? "infeasible" : "inaccurate";
  return { status, W, dual: dual.map((x) => x / sum), value: NaN, margin: 0, support, gap: Infinity };
}

/**
 * Solve min ‖W‖_F over the rows exactly.
 * @param {Rows} rows
 * @param {number[][]} queries  data.z
 * @returns {Solution}
 */
export function solveRows(rows, queries) {
  const P = vectorRows(rows, queries);
  const S = emptyBasis(P.D, P.b.length);
  const outcome = advance(P, S, Int32Array.from(P.b.keys()), P.b.length);
  if (outcome === INFEASIBLE) return contradicted(P, S);
  const [W, value, dual] = [S.w, Math.hypot(...S.w), new Float64Array(P.b.length)];
  for (let a = 0; a < S.k; a++) dual[S.row[a]] = S.dual[a] / (P.length[S.row[a]] * value);
  const { gap, primal, rounding } = certify(rows, queries, "fro", W, dual);
  const good = outcome === SOLVED && gap - rounding <= EXACT && primal <= EXACT;
  const support = Array.from(dual, (_, m) => isTight(P, m, W, value));
  return { status: good ? "optimal" : "inaccurate", W, dual, value, margin: 1 / value, support, gap };
}

/**
 * @typedef {object} Demand  a row of a contradiction
 * @property {number} sequence
 * @property {number} token  the token that must win
 * @property {number} other  the token that must lose
 * @property {number} weight  its multiplier; the weighted rows add up to zero
 */

/**
 * The rows that contradict each other: which sequences want which tokens over which.
 * @param {Rows} rows
 * @param {Float64Array} dual  of an infeasible solution
 * @returns {Demand[]}  largest weight first
 */
export function contradiction(rows, dual) {
  const { sequence, token, other } = rows;
  const named = sequence.map((i, m) => ({ sequence: i, token: token[m], other: other[m], weight: dual[m] }));
  return named.filter((row) => row.weight > 0).sort((a, b) => b.weight - a.weight);
}
