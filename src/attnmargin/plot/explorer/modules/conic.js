// A primal-dual interior-point method for small linear and semidefinite programs,
//
//     min cᵀx   subject to   s = Gx − h,   s = (l numbers ≥ 0, an n × n matrix ⪰ 0),
//
// with the scaling of Nesterov and Todd and Mehrotra's corrector; its dual is max hᵀz, Gᵀz = c.

import { choleskyFactor, jacobi, multiplied, solveCholesky, transposed } from "./algebra.js";

/**
 * @typedef {object} Program
 * @property {number} l
 * @property {number} n
 * @property {Float64Array} c
 * @property {Float64Array[]} G  a column of l + n² numbers for each entry of x
 * @property {Float64Array} h
 */

/**
 * @typedef {object} Point
 * @property {Float64Array} x
 * @property {Float64Array} s
 * @property {Float64Array} z
 */

/**
 * @typedef {object} Scaling  both s and z become lambda
 * @property {Float64Array} w  (l), √(s/z)
 * @property {Float64Array} inverse  (n²) R⁻¹ with S = R Λ Rᵀ and Z = R⁻ᵀ Λ R⁻¹
 * @property {Float64Array} lambda  (l + n)
 */

// Share of the way to the boundary, the most steps, the most corrections of each, and their goal.
const [INSIDE, ROUNDS, REFINED, FINE_ENOUGH] = [0.99, 60, 6, 1e-14];

/** @param {Float64Array} a @param {Float64Array} b */
function inner(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

/** Gx. @param {Float64Array[]} G @param {Float64Array} x */
function combined(G, x) {
  const out = new Float64Array(G[0].length);
  for (let i = 0; i < x.length; i++) for (let k = 0; k < out.length; k++) out[k] += G[i][k] * x[i];
  return out;
}

/** Gx − h. @param {Program} P @param {Float64Array} x */
const image = ({ G, h }, x) => combined(G, x).map((v, k) => v - h[k]);

/** L M Lᵀ, exactly symmetric, on the matrix part, and each number times its factor. */
function congruent(/** @type {Program} */ { l }, /** @type {Float64Array} */ v,
  /** @type {(k: number) => number} */ factor, /** @type {Float64Array} */ L) {
  const out = new Float64Array(v.length);
  for (let k = 0; k < l; k++) out[k] = v[k] * factor(k);
  const M = multiplied(multiplied(L, v.subarray(l)), transposed(L));
  transposed(M).forEach((x, k) => { out[l + k] = (x + M[k]) / 2; });
  return out;
}

/** @param {Program} P @param {Point} point @returns {Scaling | null} */
function scaling({ l, n }, { s, z }) {
  const [w, lambda] = [new Float64Array(l), new Float64Array(l + n)];
  for (let k = 0; k < l; k++) [w[k], lambda[k]] = [Math.sqrt(s[k] / z[k]), Math.sqrt(s[k] * z[k])];
  const [L, K] = [choleskyFactor(s.subarray(l)), choleskyFactor(z.subarray(l))];
  if (!L || !K) return null;
  const { US, s: sigma } = jacobi(multiplied(transposed(K), L));
  lambda.set(sigma, l);
  const inverse = multiplied(transposed(US), transposed(K)).map((v, k) => v / sigma[Math.floor(k / n)] ** 1.5);
  return { w, inverse, lambda };
}

/** Solve Λ∘u = r: divide entry (i, j) by the mean of λ_i and λ_j. @param {Program} P @param {Float64Array} lambda */
function divided({ l, n }, lambda, /** @type {Float64Array} */ r) {
  return r.map((v, k) => {
    if (k < l) return v / lambda[k];
    return (2 * v) / (lambda[l + Math.floor((k - l) / n)] + lambda[l + ((k - l) % n)]);
  });
}

/** ½(uv + vu), entry by entry on the numbers. @param {Program} P @param {Float64Array} u @param {Float64Array} v */
function jordanProduct({ l }, u, v) {
  const out = u.map((a, k) => a * v[k]);
  const M = multiplied(u.subarray(l), v.subarray(l));
  const T = transposed(M);
  for (let k = 0; k < M.length; k++) out[l + k] = (M[k] + T[k]) / 2;
  return out;
}

/** diag(f(λ)). @param {Program} P @param {Float64Array} lambda @param {(x: number) => number} f */
function diagonal({ l, n, h }, lambda, f) {
  const out = new Float64Array(h.length);
  for (let k = 0; k < l + n; k++) out[k < l ? k : l + (k - l) * (n + 1)] = f(lambda[k]);
  return out;
}

/** The longest step that keeps Λ + step·u in the cone. @param {Program} P @param {Float64Array} lambda */
function longest({ l, n }, lambda, /** @type {Float64Array} */ u) {
  let least = 0;
  for (let k = 0; k < l; k++) least = Math.min(least, u[k] / lambda[k]);
  const M = u.slice(l).map((v, k) => v / Math.sqrt(lambda[l + Math.floor(k / n)] * lambda[l + (k % n)]));
  const shift = Math.hypot(...M); // no eigenvalue is below −shift
  for (let k = 0; k < n; k++) M[k * (n + 1)] += shift;
  if (n > 0) least = Math.min(least, Math.min(...jacobi(M).s) - shift);
  return least < 0 ? -1 / least : Infinity;
}

/** L with L Lᵀ = GᵀG, without that product, whose condition is squared. @param {Float64Array[]} G */
function triangular(G) {
  const [N, Q] = [G.length, G.map((column) => column.slice())];
  const L = new Float64Array(N * N);
  for (let i = 0; i < N; i++) {
    for (let round = 0; round < 2; round++) {
      for (let j = 0; j < i; j++) {
        const share = inner(Q[i], Q[j]);
        L[i * N + j] += share;
        for (let k = 0; k < Q[i].length; k++) Q[i][k] -= share * Q[j][k];
      }
    }
    const norm = Math.sqrt(inner(Q[i], Q[i]));
    if (!(norm > 0)) return null;
    L[i * N + i] = norm;
    for (let k = 0; k < Q[i].length; k++) Q[i][k] /= norm;
  }
  return L;
}

/**
 * Newton's directions from a point: a function of r that makes s∘z, scaled, equal to Λ² + r, and s
 * and z feasible; u and v are ds and dz, scaled. Null if rounding forbids them.
 * @param {Program} P @param {Point} point @param {Scaling} at
 */
function directions(P, { x, s, z }, at) {
  const { c, G } = P;
  const N = c.length;
  const inside = (/** @type {Float64Array} */ v) => congruent(P, v, (k) => 1 / at.w[k], at.inverse);
  const outside = (/** @type {Float64Array} */ v) => congruent(P, v, (k) => 1 / at.w[k], transposed(at.inverse));
  const scaled = G.map(inside);
  const L = triangular(scaled);
  const want = image(P, x);
  const gap = s.map((v, k) => v - want[k]);
  const missing = inside(gap);
  const free = c.map((v, i) => v - inner(G[i], z));
  return (/** @type {Float64Array} */ r) => {
    if (!L) return null;
    const t = divided(P, at.lambda, r).map((v, k) => v + missing[k]);
    const [dx, dz, u] = [new Float64Array(N), new Float64Array(s.length), new Float64Array(s.length)];
    for (let round = 0; round <= REFINED; round++) {
      const right = free.map((v, i) => inner(G[i], dz) - v);
      if (round > 0 && right.every((v) => Math.abs(v) < FINE_ENOUGH)) break;
      if (round === 0) scaled.forEach((column, i) => { right[i] += inner(column, t); });
      const more = solveCholesky(L, right);
      const part = combined(scaled, more);
      more.forEach((v, i) => { dx[i] += v; });
      part.forEach((v, k) => { u[k] += v; });
      outside(part.map((v, k) => (round === 0 ? t[k] - v : -v))).forEach((v, k) => { dz[k] += v; });
    }
    const ds = combined(G, dx).map((v, k) => v - gap[k]);
    return { dx, ds, dz, v: t.map((v, k) => v - u[k]), u: u.map((v, k) => v - missing[k]) };
  };
}

/** One predictor-corrector step; null if rounding forbids it. @param {Program} P @param {Point} point */
function step(P, point) {
  const at = scaling(P, point);
  if (!at) return null;
  const { lambda } = at;
  const solve = directions(P, point, at);
  const down = diagonal(P, lambda, (x) => -x * x);
  const first = solve(down);
  if (!first) return null;
  const reach = Math.min(1, longest(P, lambda, first.u), longest(P, lambda, first.v));
  const mu = lambda.reduce((sum, x) => sum + x * x, 0) / lambda.length;
  const centre = diagonal(P, lambda, () => (1 - reach) ** 3 * mu);
  const second = jordanProduct(P, first.u, first.v);
  const move = solve(down.map((v, k) => v + centre[k] - second[k]));
  if (!move) return null;
  const [p, q] = [move.u, move.v].map((u) => Math.min(1, INSIDE * longest(P, lambda, u)));
  return {
    x: point.x.map((v, i) => v + p * move.dx[i]),
    s: point.s.map((v, k) => v + p * move.ds[k]),
    z: point.z.map((v, k) => v + q * move.dz[k]),
  };
}

/**
 * Walk to the solution.
 * @param {Program} P
 * @param {(point: Point) => boolean} enough  looks at every point and says when to end
 */
export function solveProgram(P, enough) {
  const one = () => diagonal(P, new Float64Array(P.l + P.n), () => 1);
  /** @type {Point | null} */
  let point = { x: new Float64Array(P.c.length), s: one(), z: one() };
  for (let round = 0; point && round < ROUNDS && !enough(point); round++) point = step(P, point);
}
