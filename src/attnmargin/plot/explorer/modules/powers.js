// The entrywise ℓp norm: Newton's method whose quadratic models are solved exactly.
//
// With 1/p + 1/q = 1 the solution has w = ∇(1/q) Σ|v|^q at v = Aᵀλ. For p < 2 the method minimises
// (1/q) Σ|Aᵀλ|^q − bᵀλ over λ ≥ 0, for p > 2 (1/p) Σ|w|^p over A w ≥ b: both are smooth. A model has
// one weight per entry of w; it is a Frobenius problem after scaling. p starts near 2 and moves.

import { SOLVED, advance, emptyBasis, system } from "./activeset.js";

/**
 * @typedef {object} State
 * @property {Float64Array} w
 * @property {Float64Array} dual
 */

/**
 * @typedef {object} Plain  rows A w ≥ b
 * @property {number} D
 * @property {Float64Array} A
 * @property {Float64Array} b
 */

// The path of p − 1 or q − 1; models per point of it and at its end.
const [RATIO, ROUGH, FINE] = [1.6, 3, 60];
// Curvatures below a share of the largest are raised, more if a model fails.
const FLOORS = [1e-12, 1e-9, 1e-6, 1e-3, 1];
// A value that rises by less does so by rounding.
const RISES_BY = 1e-13;

/** sign(x) |x|^a. @param {number} x @param {number} a */
const signed = (x, a) => Math.sign(x) * Math.abs(x) ** a;

/** Σ|x|^p. @param {Float64Array} x @param {number} p */
const powers = (x, p) => x.reduce((sum, y) => sum + Math.abs(y) ** p, 0);
/** bᵀλ. @param {Plain} P @param {Float64Array} dual */
const gain = ({ b }, dual) => dual.reduce((sum, x, m) => sum + b[m] * x, 0);

/** Aᵀλ. @param {Plain} P @param {Float64Array} dual */
function combination({ D, A }, dual) {
  const v = new Float64Array(D);
  for (let m = 0; m < dual.length; m++) for (let c = 0; c < D; c++) v[c] += dual[m] * A[m * D + c];
  return v;
}

/**
 * Solve min Σ (x_c − e_c)² / weight_c over A x ≥ b, with e = w − weight ∘ v at the present point.
 * @param {Plain} P @param {State} state @param {Float64Array} v @param {Float64Array} weight
 * @returns {State | null}
 */
function model({ D, A, b }, { w }, v, weight) {
  const root = weight.map(Math.sqrt);
  const e = w.map((x, c) => x - weight[c] * v[c]);
  const rest = b.map((bound, m) => e.reduce((sum, x, c) => sum - A[m * D + c] * x, bound));
  const scaled = system(D, A.map((x, k) => x * root[k % D]), rest);
  const S = emptyBasis(D, b.length);
  if (advance(scaled, S, Int32Array.from(b.keys()), b.length) !== SOLVED) return null;
  const dual = new Float64Array(b.length);
  for (let a = 0; a < S.k; a++) dual[S.row[a]] = S.dual[a] / scaled.length[S.row[a]];
  return { w: e.map((x, c) => x + root[c] * S.w[c]), dual };
}

/**
 * Solve the model of (1/p) Σ|w|^p for p > 2, else of its conjugate, with curvatures raised as
 * little as possible.
 * @param {Plain} P @param {State} state @param {Float64Array} v @param {number} p
 */
function safeModel(P, state, v, p) {
  const [x, power, sign] = p > 2 ? [state.w, p, -1] : [v, p / (p - 1), 1];
  const curve = x.map((y) => (power - 1) * Math.abs(y) ** (power - 2));
  const largest = Math.max(...curve);
  for (const floor of FLOORS) {
    const found = model(P, state, v, curve.map((y) => Math.max(y, floor * largest) ** sign));
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
    if (value <= now && value <= start + RISES_BY * Math.abs(start)) return best;
    [best, value] = [x, now];
  }
  return from;
}

/** Scale multipliers to minimise (1/q) Σ|Aᵀλ|^q − bᵀλ; w follows. @param {Plain} P @param {Float64Array} dual */
function atBestScale(P, dual, /** @type {number} */ q) {
  const v = combination(P, dual);
  const factor = (gain(P, dual) / powers(v, q)) ** (1 / (q - 1));
  return { dual: dual.map((x) => x * factor), w: v.map((x) => signed(x * factor, q - 1)) };
}

/** One step for p < 2, from multipliers. @param {Plain} P @param {State} state @param {number} p */
function dualStep(P, { dual }, p) {
  const q = p / (p - 1);
  const now = atBestScale(P, dual, q);
  const found = safeModel(P, now, combination(P, now.dual), p);
  if (!found) return null;
  const value = (/** @type {Float64Array} */ x) => powers(combination(P, x), q) / q - gain(P, x);
  return atBestScale(P, between(now.dual, found.dual, value), q);
}

/** One step for p > 2, from a feasible w. @param {Plain} P @param {State} state @param {number} p */
function primalStep(P, state, p) {
  const found = safeModel(P, state, state.w.map((x) => signed(x, p - 1)), p);
  return found && { w: between(state.w, found.w, (x) => powers(x, p)), dual: found.dual };
}

/**
 * Solve min ‖w‖_p over A w ≥ b, from the multipliers of its solution for p = 2.
 * @param {Plain} P  scaled so that the solution for p = 2 has about the length one
 * @param {number} p
 * @param {Float64Array} dual
 * @param {(w: Float64Array, dual: Float64Array) => boolean} enough  looks at every answer for this p
 *   and says when to end
 */
export function solvePower(P, p, dual, enough) {
  /** @type {State | null} */
  let state = { w: combination(P, dual), dual };
  const goal = Math.max(p - 1, 1 / (p - 1));
  for (let power = 1; power < goal;) {
    power = Math.min(power * RATIO, goal);
    const now = power === goal ? p : 1 + power ** Math.sign(p - 2);
    for (let turn = 0; turn < (now === p ? FINE : ROUGH); turn++) {
      state = p < 2 ? dualStep(P, state, now) : primalStep(P, state, now);
      if (!state || (now === p && enough(state.w, state.dual))) return;
    }
  }
}
