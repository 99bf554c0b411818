// The margin problem in other norms: the direction of each optimiser, with a certificate.

import { advance, emptyBasis, slackOf } from "./activeset.js";
import { certify, normOf, rowValues } from "./certificate.js";
import { solveProgram } from "./conic.js";
import { solveRows, vectorRows } from "./frobenius.js";
import { solvePower } from "./powers.js";
import { tokenRows } from "./rows.js";

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./certificate.js").Norm} Norm */
/** @typedef {import("./frobenius.js").Solution} Solution */
/** @typedef {import("./activeset.js").System} System */
/** @typedef {(W: Matrix, dual: Float64Array) => boolean} Look  looks at an answer and says when to end */

/**
 * @typedef {object} Flat  rows a_m · w ≥ b_m of about unit length, whose Frobenius solution has it too
 * @property {number} d
 * @property {number} D
 * @property {number} M
 * @property {Float64Array} A
 * @property {Float64Array} b
 */

// Gap at which to end, and the largest that is called optimal.
const [ENOUGH, GOOD] = [1e-12, 1e-9];
// A row within this share of the least one holds with equality.
const HOLDS = 1e-6;

/** Zeros but for the given places. @param {number} size @param {[number, number][]} entries */
function sparse(size, entries) {
  const x = new Float64Array(size);
  for (const [place, value] of entries) x[place] = value;
  return x;
}

/** Entries of [0 M; Mᵀ 0] from those of M. */
function off(/** @type {number} */ d, /** @type {number} */ k, /** @type {number} */ value) {
  const [i, j, n] = [Math.floor(k / d), d + (k % d), 2 * d];
  return /** @type {[number, number][]} */ ([[i * n + j, value], [j * n + i, value]]);
}

/** Entries of the identity from place on. @param {number} n @param {number} place @param {number} value */
function ones(n, place, value) {
  return Array.from({ length: n }, (_, k) => /** @type {[number, number]} */ ([place + k * (n + 1), value]));
}

/** @param {[number, number][]} entries @param {number} by */
const shifted = (entries, by) => entries.map(([k, x]) => /** @type {[number, number]} */ ([k + by, x]));

/** Nuclear: max bᵀλ over λ ≥ 0, ‖Aᵀλ‖ ≤ 1 in the spectral norm. @param {Flat} F @param {Look} look */
function nuclear({ d, D, M, A, b }, look) {
  const n = 2 * d;
  const G = Array.from({ length: M }, (_, m) => {
    const row = [...A.subarray(m * D, m * D + D)].flatMap((x, k) => shifted(off(d, k, x), M));
    return sparse(M + n * n, [[m, 1], ...row]);
  });
  const program = { l: M, n, c: b.map((x) => -x), G, h: sparse(M + n * n, ones(n, M, -1)) };
  const W = (/** @type {Float64Array} */ z) => new Float64Array(D).map((_, k) => -2 * z[M + off(d, k, 1)[0][0]]);
  solveProgram(program, ({ x, z }) => look(W(z), x));
}

/** Spectral: min t over A W ≥ b, [tI W; Wᵀ tI] ⪰ 0. @param {Flat} F @param {Look} look */
function spectral({ d, D, M, A, b }, look) {
  const n = 2 * d;
  const G = Array.from({ length: D }, (_, k) => {
    const column = Array.from({ length: M }, (_, m) => /** @type {[number, number]} */ ([m, A[m * D + k]]));
    return sparse(M + n * n, [...column, ...shifted(off(d, k, 1), M)]);
  });
  G.push(sparse(M + n * n, ones(n, M, 1)));
  const h = sparse(M + n * n, [...b.entries()]);
  const program = { l: M, n, c: sparse(D + 1, [[D, 1]]), G, h };
  solveProgram(program, ({ x, z }) => look(x.slice(0, D), z.slice(0, M)));
}

/** Largest entry: min t over A W ≥ b, t ± W_k ≥ 0. @param {Flat} F @param {Look} look */
function largest({ D, M, A, b }, look) {
  const l = M + 2 * D;
  const G = Array.from({ length: D }, (_, k) => {
    const column = Array.from({ length: M }, (_, m) => /** @type {[number, number]} */ ([m, A[m * D + k]]));
    return sparse(l, [...column, [M + k, 1], [M + D + k, -1]]);
  });
  G.push(new Float64Array(l).fill(1, M));
  const program = { l, n: 0, c: sparse(D + 1, [[D, 1]]), G, h: sparse(l, [...b.entries()]) };
  solveProgram(program, ({ x, z }) => look(x.slice(0, D), z.slice(0, M)));
}

/** The method of a norm. @param {Norm} norm @param {Flat} F @param {Float64Array} dual @param {Look} look */
function run(norm, F, dual, look) {
  if (norm === "nuc") return nuclear(F, look);
  if (norm === "spectral") return spectral(F, look);
  if (norm === "max") return largest(F, look);
  return solvePower(F, Number(norm), dual, look);
}

/**
 * Solve min ‖W‖ over the rows of a selection in a norm. W need not be unique for nuc, max, spectral.
 * @param {Data} data
 * @param {Selection} selection
 * @param {Norm} norm
 * @returns {Solution}
 */
export function solveNorm(data, selection, norm) {
  return solveRowsIn(norm, tokenRows(data, selection), data.z);
}

/**
 * Solve min ‖W‖ over rows in a norm.
 * @param {Norm} norm
 * @param {Rows} rows
 * @param {number[][]} queries
 * @returns {Solution}
 */
export function solveRowsIn(norm, rows, queries) {
  const start = solveRows(rows, queries);
  if (norm === "fro" || norm === 2 || !(start.value > 0)) return start;
  const [P, size] = [vectorRows(rows, queries), start.value];
  const F = { d: queries[0].length, D: P.D, M: P.b.length, A: P.A, b: P.b.map((x) => x / size) };
  let [best, waited] = [{ ...start, gap: Infinity }, 0];
  run(norm, F, start.dual.map((x, m) => x * P.length[m]), (w, dual) => {
    const W = projected(P, w.map((x) => x * size));
    const found = answer(rows, queries, norm, W, dual.map((x, m) => x / P.length[m]));
    waited = found.gap < best.gap ? 0 : waited + 1;
    if (found.gap < best.gap) best = found;
    return best.gap < ENOUGH || (best.gap < GOOD && waited > 2);
  });
  return best;
}

/** Move w as little as possible so that all rows hold. @param {System} P @param {Float64Array} w */
function projected(P, w) {
  const S = emptyBasis(P.D, P.b.length);
  const b = P.b.map((_, m) => -slackOf(P, m, w));
  advance({ ...P, b }, S, Int32Array.from(b.keys()), b.length);
  return w.map((x, c) => x + S.w[c]);
}

/**
 * Scale W until its least row is one, and certify it.
 * @param {Rows} rows @param {number[][]} queries @param {Norm} norm @param {Matrix} w @param {Float64Array} given
 * @returns {Solution}
 */
function answer(rows, queries, norm, w, given) {
  const values = rowValues(rows, queries, w).map((row) => row.value);
  const least = Math.min(...values);
  const W = w.map((x) => x / least);
  const value = normOf(norm, W);
  const dual = given.map((x) => Math.max(x, 0));
  const sum = dual.reduce((all, x) => all + x, 0);
  dual.forEach((x, m) => { dual[m] = (x * value) / sum; });
  const { gap, primal } = certify(rows, queries, norm, W, dual);
  const fine = least > 0 && gap <= GOOD && primal <= GOOD;
  const support = values.map((x) => x <= (1 + HOLDS) * least);
  return { status: fine ? "optimal" : "inaccurate", W, dual, value, margin: 1 / value, support, gap };
}
