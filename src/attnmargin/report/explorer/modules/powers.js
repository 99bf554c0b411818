// The entrywise ℓp norm: Newton's method whose quadratic models are solved exactly.
//
// With 1/p + 1/q = 1 the solution has W = ∇(1/q) Σ|V|^q at V = Aᵀλ. For p ≤ 2 the method minimises
// (1/q) Σ|Aᵀλ|^q − Σλ over λ ≥ 0, for p > 2 (1/p) Σ|W|^p over A W ≥ 1: both are smooth. A model has
// one weight per entry of W; it is a Frobenius problem after scaling. p starts near 2 and moves.

import { SOLVED, advance, emptyBasis, system } from "./activeset.js";

/**
 * @typedef {object} State
 * @property {Float64Array} w
 * @property {Float64Array} dual
 */

/**
 * @typedef {object} Plain  rows A w ≥ 1
 * @property {number} D
 * @property {Float64Array} A
 * @property {number} M
 */

// The path of p − 1 or q − 1; models per point of it and at its end.
const [RATIO, ROUGH, FINE] = [1.6, 3, 60];
// Curvatures below a share of the largest are raised, more if a model fails.
const FLOORS = [1e-12, 1e-9, 1e-6, 1e-3, 1];
// A value that rises by less does so by rounding.
const ROUNDING = 1e-13;

/** sign(x) |x|^a. @param {number} x @param {number} a */
const signed = (x, a) => Math.sign(x) * Math.abs(x) ** a;

/** Aᵀλ. @param {Plain} P @param {Float64Array} dual */
function combination({ D, A, M }, dual) {
  const v = new Float64Array(D);
  for (let m = 0; m < M; m++) for (let c = 0; c < D; c++) v[c] += dual[m] * A[m * D + c];
  return v;
}

/**
 * Solve min Σ (w_c − e_c)² / weight_c over A w ≥ 1, with e = w − weight ∘ v at the present point.
 * @param {Plain} P @param {Float64Array} w @param {Float64Array} v @param {Float64Array} weight
 * @returns {State | null}
 */
function model({ D, A, M }, w, v, weight) {
  const root = weight.map(Math.sqrt);
  const e = w.map((x, c) => x - weight[c] * v[c]);
  const b = new Float64Array(M).map((_, m) => e.reduce((rest, x, c) => rest - A[m * D + c] * x, 1));
  const S = emptyBasis(D, M);
  const scaled = system(D, A.map((x, k) => x * root[k % D]), b);
  if (advance(scaled, S, Int32Array.from(b.keys()), M) !== SOLVED) return null;
  const dual = new Float64Array(M);
  for (let a = 0; a < S.k; a++) dual[S.row[a]] = S.dual[a] / scaled.length[S.row[a]];
  return { w: e.map((x, c) => x + root[c] * S.w[c]), dual };
}

/**
 * Solve the model with curvatures raised as little as possible.
 * @param {Plain} P @param {Float64Array} w @param {Float64Array} v @param {number} q
 */
function safeModel(P, w, v, q) {
  const [x, sign] = q > 0 ? [v, 1] : [w, -1];
  const power = Math.abs(q);
  const curve = x.map((y) => (power - 1) * Math.abs(y) ** (power - 2));
  const largest = Math.max(...curve);
  for (const floor of FLOORS) {
    const found = model(P, w, v, curve.map((y) => Math.max(y, floor * largest) ** sign));
    if (found) return found;
  }
  return null;
}

/**
 * The point between two where a convex function is least, nearly.
 * @param {Float64Array} from @param {Float64Array} to @param {(x: Float64Array) => number} f
 */
function between(from, to, f) {
  const at = (/** @type {number} */ share) => from.map((value, k) => value + share * (to[k] - value));
  let [best, value] = [to, f(to)];
  const start = f(from);
  for (let share = 0.5; share > 1e-6; share /= 2) {
    const x = at(share);
    const now = f(x);
    if (value <= now && value <= start + ROUNDING * Math.abs(start)) return best;
    [best, value] = [x, now];
  }
  return from;
}

/** One step for p ≤ 2, q ≥ 2, from multipliers. @param {Plain} P @param {State} state @param {number} q */
function dualStep(P, { dual }, q) {
  const scaled = atBestScale(P, dual, q);
  const v = combination(P, scaled);
  const w = v.map((x) => signed(x, q - 1));
  const found = safeModel(P, w, v, q);
  if (!found) return null;
  const value = (/** @type {Float64Array} */ x) => powers(combination(P, x), q) / q - total(x);
  const next = atBestScale(P, between(scaled, found.dual, value), q);
  return { dual: next, w: combination(P, next).map((x) => signed(x, q - 1)) };
}

/** @param {Float64Array} x */
const total = (x) => x.reduce((sum, y) => sum + y, 0);
/** @param {Float64Array} x @param {number} p */
const powers = (x, p) => x.reduce((sum, y) => sum + Math.abs(y) ** p, 0);

/** Scale multipliers to minimise (1/q) Σ|Aᵀλ|^q − Σλ. @param {Plain} P @param {Float64Array} dual @param {number} q */
function atBestScale(P, dual, q) {
  const factor = (total(dual) / powers(combination(P, dual), q)) ** (1 / (q - 1));
  return dual.map((x) => x * factor);
}

/** One step for p > 2, from a feasible W. @param {Plain} P @param {State} state @param {number} p */
function primalStep(P, { w }, p) {
  const found = safeModel(P, w, w.map((x) => signed(x, p - 1)), -p);
  if (!found) return null;
  return { w: between(w, found.w, (x) => powers(x, p)), dual: found.dual };
}

/**
 * Solve min ‖w‖_p over A w ≥ 1, from its solution for p = 2.
 * @param {Plain} P  scaled so that the solution for p = 2 has about the length one
 * @param {number} p
 * @param {State} state
 * @param {(state: State) => boolean} enough  looks at every state for this p and says when to end
 */
export function solvePower(P, p, state, enough) {
  const goal = Math.max(p, p / (p - 1)) - 1;
  for (let power = 1; power < goal;) {
    power = Math.min(power * RATIO, goal);
    for (let turn = 0; turn < (power < goal ? ROUGH : FINE); turn++) {
      const next = p < 2 ? dualStep(P, state, power + 1) : primalStep(P, state, power + 1);
      if (!next) break;
      state = next;
      if (power === goal && enough(state)) return;
    }
  }
}
