// Theorem B: the funnel around the direction of a selection. With the rows A_j = (x_iα − x_it) z_iᵀ
// and the support S: W_mm = Σ_S λ_j A_j, K_SS λ = 1, Θ² = 1/Σλ, σ_j = ⟨A_j, W_mm⟩ = 1 + δ_j.

import { choleskyFactor, singularValues, solveCholesky } from "./algebra.js";
import { tokenRows } from "./rows.js";

/** @typedef {import("./types.js").Matrix} Matrix */

/**
 * @typedef {object} FunnelRow
 * @property {number} i  its sequence
 * @property {Float64Array} left
 * @property {number[]} right
 * @property {number} gap  Δ
 * @property {number} logKappa  log −ℓ'(γ_iα)
 * @property {number} bend  Λ_i
 * @property {number} weight  log of how many copies the other token has, over the selected one
 * @property {number} length  ‖A‖
 * @property {boolean} held  in S
 * @property {number} dual  λ on S, else 0
 * @property {number[]} gram  ⟨A, A_k⟩, k in S
 * @property {number} sigma  from below
 * @property {number} delta
 * @property {number} across  ‖A^⊥‖, from above
 * @property {number} base  margin of the centre, from below
 */

/**
 * @typedef {object} Frame
 * @property {boolean} usable  no obstacle is known
 * @property {FunnelRow[]} rows
 * @property {FunnelRow[]} support
 * @property {Matrix} factor  Cholesky factor of K_SS, for rows of length one
 * @property {number} least  least eigenvalue of that matrix
 * @property {number} theta2  Θ²
 * @property {number} spread  M
 * @property {number} count  sequences
 */

/**
 * @typedef {object} Funnel
 * @property {boolean} proved
 * @property {number} share  least attention of a selected token for ever
 * @property {number} logGradient  log of a bound of ‖∇L‖ for ever
 * @property {number} longest  longest step for which the inequality was found to hold
 */

/**
 * @typedef {object} Centre
 * @property {number} g
 * @property {number} zeta
 * @property {number} rho  ρ₀, from above
 * @property {number} theta  Θ
 */

const EPS = 2 ** -52;
// Units in the last place; the least eigenvalue of support rows of length one.
const FRAME_UNITS = 64;
const POINT_UNITS = 32;
const WORST_CONDITION = 1e9;
// Radii per search, and the largest ‖A^⊥‖ R that is tried.
const RADII = 40;
const FARTHEST = 100;
// Rows whose δ is at most this may be slow; shares by which squares are split.
const CUTS = [0, 0.003, 0.01, 0.03, 0.1, 0.3];
const SPLITS = [0.02, 0.1, 0.5, 1];
// Least values of ω, 1 − c/2 and τ; what is kept of R, against rounding.
const [LEAST_OMEGA, LEAST_ROOM, LEAST_TAU, KEPT_RADIUS] = [0.05, 0.02, 0.1, 0.999];
const HALVINGS = 12;

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
function innerProduct(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

/** ⟨A, M⟩, or the size of its terms. @param {FunnelRow} row @param {ArrayLike<number>} M
 * @param {(x: number) => number} [of]
 */
function applied({ left, right }, M, of = (x) => x) {
  let sum = 0;
  for (let r = 0; r < left.length; r++) {
    for (let c = 0; c < right.length; c++) sum += of(left[r] * M[r * right.length + c] * right[c]);
  }
  return sum;
}

/**
 * Build the frame of a solved selection.
 * @param {import("./guarantee.js").Case} own
 * @param {import("./types.js").Selection} selection
 * @param {import("./types.js").Solution} solution
 * @returns {Frame}
 */
export function buildFrame(own, selection, solution) {
  const rows = frameRows(own, selection);
  const optimal = solution.status === "optimal";
  rows.forEach((row, j) => (row.held = optimal && solution.support[j] && solution.dual[j] > 0));
  const support = rows.filter((row) => row.held);
  /** @type {Frame} */
  const frame = {
    usable: optimal && support.length > 0, rows, support, factor: new Float64Array(), least: 0, theta2: 0,
    spread: 0, count: own.tokens.n,
  };
  if (!frame.usable) return frame;
  for (const row of rows) {
    row.gram = support.map((k) => innerProduct(row.left, k.left) * innerProduct(row.right, k.right));
  }
  const unit = support.map((a, j) => support.map((b, k) => a.gram[k] / (a.length * b.length)));
  const flat = Float64Array.from(unit.flat());
  const factor = choleskyFactor(flat);
  frame.usable = factor !== null;
  if (!factor) return frame;
  frame.factor = factor;
  frame.least = Math.min(...singularValues(flat));
  setMultipliers(frame, unit);
  frame.theta2 = 1 / support.reduce((sum, row) => sum + row.dual, 0);
  frame.spread = spreadOf(frame);
  const high = rows.some((row, j) => !setMargin(frame, row, solution.support[j]));
  const weak = frame.least * WORST_CONDITION < 1 || support.some((row) => !(row.dual > 0));
  frame.usable = !high && !weak && rows.every((row) => Number.isFinite(row.bend));
  return frame;
}

/** @param {import("./guarantee.js").Case} own @param {number[]} selection @returns {FunnelRow[]} */
function frameRows({ data, tokens, loss, copies, doubt }, selection) {
  const { first, gamma, rise } = tokens;
  const { left, sequence, other } = tokenRows(data, selection);
  return left.map((x, m) => {
    const i = sequence[m];
    const [a, b] = [first[i] + selection[i], first[i] + other[m]];
    const gap = rise[a] - rise[b];
    const seen = gamma.subarray(first[i], first[i + 1]);
    return {
      i, left: x, right: data.z[i], gap: gap > doubt[i] ? gap : Math.min(gap, 0),
      logKappa: loss.logSlope(gamma[a]), bend: loss.bend(Math.min(...seen), Math.max(...seen)),
      weight: copies[b] - copies[a], length: Math.hypot(...x) * tokens.lengths[i],
      held: false, dual: 0, gram: [], sigma: 1, delta: 0, across: 0, base: 0,
    };
  });
}

/** Solve L x = b. @param {Matrix} L @param {number[]} b */
function lowerSolved(L, b) {
  const x = b.slice();
  for (let a = 0; a < x.length; a++) {
    for (let k = 0; k < a; k++) x[a] -= L[a * x.length + k] * x[k];
    x[a] /= L[a * x.length + a];
  }
  return x;
}

/** Solve K_SS λ = 1, refined once. @param {Frame} frame @param {number[][]} unit */
function setMultipliers({ support, factor }, unit) {
  const right = Float64Array.from(support, (row) => 1 / row.length);
  const x = solveCholesky(factor, right);
  const more = solveCholesky(factor, right.map((value, a) => value - innerProduct(unit[a], x)));
  support.forEach((row, a) => (row.dual = (x[a] + more[a]) / row.length));
}

/** Set σ, δ and ‖A^⊥‖ of a row; returns false if it stands against the theorem.
 * @param {Frame} frame @param {FunnelRow} row @param {boolean} tight
 */
function setMargin({ support, least, theta2 }, row, tight) {
  const dual = support.map((k) => k.dual);
  const sigma = innerProduct(row.gram, dual);
  const size = innerProduct(row.gram.map(Math.abs), dual.map(Math.abs));
  const unsure = FRAME_UNITS * EPS * Math.min(1 / least, 1e30) * size;
  row.sigma = row.held ? 1 : sigma - unsure;
  row.delta = row.held ? 0 : Math.max(row.sigma - 1, 0);
  const square = Math.max(row.length ** 2 - theta2 * row.sigma ** 2, 0);
  row.across = Math.sqrt(square + FRAME_UNITS * EPS * row.length ** 2);
  const level = tight && sigma - 1 > -unsure;
  const below = !row.held && sigma - 1 < unsure && !level;
  return !below && !(row.gap <= 0 && (row.held || tight));
}

/** M, the largest eigenvalue of Λ^{1/2} (K_SS − Θ² 11ᵀ) Λ^{1/2}. @param {Frame} frame */
function spreadOf({ support, theta2 }) {
  const root = support.map((row) => Math.sqrt(Math.max(row.dual, 0)));
  const inner = support.map((row, a) => row.gram.map((x, b) => (x - theta2) * root[a] * root[b]));
  const size = Math.max(...inner.flat().map(Math.abs)) * inner.length;
  return Math.max(...singularValues(Float64Array.from(inner.flat()))) + FRAME_UNITS * EPS * size;
}

/**
 * Search for a funnel around the direction of a frame.
 * @param {Frame} frame @param {Matrix} W
 * @param {number} step  the longest step; 0 is gradient flow
 * @param {boolean} [measured]  whether to look for the longest step that is covered
 * @returns {Funnel}
 */
export function findFunnel(frame, W, step, measured = false) {
  const none = { proved: false, share: 0, logGradient: -Infinity, longest: 0 };
  if (!frame.usable) return none;
  const C = setCentre(frame, W);
  if (!(C.g > 0)) return none;
  const widest = Math.max(...frame.rows.map((row) => row.across), 1e-300);
  const first = Math.max(1.001 * C.rho, 1e-3 / widest);
  const last = Math.max(FARTHEST / widest, 3 * first);
  const all = Array.from({ length: RADII }, (_, k) =>
    forcesAt(frame, C, first * (last / first) ** (k / (RADII - 1))));
  for (const [turn, cut] of CUTS.entries()) {
    const slower = (/** @type {FunnelRow} */ row) => !row.held && row.delta <= cut;
    if (turn > 0 && !frame.rows.some((row) => slower(row) && row.delta > CUTS[turn - 1])) continue;
    for (const F of all) {
      const found = F && holdsWith(frame, C, F, cut, step);
      if (!found) continue;
      const longest = measured ? longestCovered(frame, C, F, cut, step) : step;
      const logGradient = logGradientBound(frame.rows, C, F);
      return { proved: true, share: 1 / (1 + F.most), logGradient, longest };
    }
  }
  return none;
}

/** Write W as g W_mm + V + r₀; sets the margins of the centre. @param {Frame} frame
 * @param {Matrix} W @returns {Centre}
 */
function setCentre({ rows, support, factor, least, theta2, count }, W) {
  const ideal = support.map((row) =>
    row.logKappa + Math.log(row.gap) + row.weight - Math.log(count * row.dual));
  const share = support.map((row) => row.dual * theta2);
  const zeta = innerProduct(share, ideal);
  const own = support.map((row) => applied(row, W));
  const g = innerProduct(share, own);
  const x = own.map((m, k) => (m - (g - zeta) - ideal[k]) / support[k].length);
  const half = lowerSolved(factor, x);
  const inverse = solveCholesky(factor, Float64Array.from(x)).map((value, k) => value / support[k].length);
  const noise = POINT_UNITS * EPS / Math.max(least, 1e-30);
  for (const row of rows) {
    const unsure = POINT_UNITS * EPS * applied(row, W, Math.abs);
    const size = innerProduct(row.gram.map(Math.abs), inverse.map(Math.abs));
    row.base = applied(row, W) - innerProduct(row.gram, inverse) - unsure - noise * size - row.weight;
  }
  const lost = support.map((row) => POINT_UNITS * EPS * applied(row, W, Math.abs) / row.length);
  const rho = Math.hypot(...half) * (1 + noise) + Math.hypot(...lost) / Math.sqrt(least);
  return { g, zeta, rho, theta: Math.sqrt(theta2) };
}

/** @typedef {NonNullable<ReturnType<typeof forcesAt>>} Forces */

/** Check the inequality for slow rows, with any split. @param {Frame} frame @param {Centre} C
 * @param {Forces} F @param {number} cut @param {number} eta
 */
function holdsWith({ rows, spread }, C, F, cut, eta) {
  let slow = 0;
  rows.forEach((row, j) => {
    if (!F.isHigh[j] && !row.held && row.delta <= cut) slow += Math.exp(F.logB[j]);
  });
  if (eta === 0) return closes(rows, spread, C, F, { cut, slow, eta, split: 1 });
  return SPLITS.some((split) => closes(rows, spread, C, F, { cut, slow, eta, split }));
}

/**
 * Compute Q̂, D̂, ε, log B and the sums that do not depend on the step or the slow rows; null if the
 * attention is not concentrated enough.
 * @param {Frame} frame @param {Centre} C @param {number} R
 */
function forcesAt({ rows, support, count }, C, R) {
  const [Q, D] = [new Float64Array(count), new Float64Array(count)];
  for (const row of rows) {
    const e = Math.exp(Math.min(row.across * R - row.base, 50));
    Q[row.i] += e;
    D[row.i] += e * Math.abs(row.gap);
  }
  const most = Q.reduce((a, b) => Math.max(a, b), 0);
  if (most >= 0.9 || support.some((row) => 0.5 * row.gap <= D[row.i])) return null;
  const eps = support.reduce((sum, { i, bend, gap }) =>
    Math.max(sum, bend * D[i] + Q[i] - Math.log1p(-D[i] / gap)), 0);
  const logB = rows.map((row) => row.logKappa - Math.log(count) + row.bend * D[row.i]
    + Math.log(Math.abs(row.gap) + D[row.i]) - C.zeta - row.base + C.g);
  const isHigh = rows.map((row) => !row.held && row.gap <= D[row.i]);
  const F = { R, logB, isHigh, most, eps, hbar: 0, omega: 0, wide: 0, low: 0, tight: 0 };
  let top = 0;
  for (const [j, row] of rows.entries()) {
    const X = row.across * R;
    if (isHigh[j]) {
      if (!(row.delta > 0)) return null;
      F.hbar += C.theta ** 2 * row.sigma * Math.exp(logB[j] + X);
      continue;
    }
    F.wide = Math.max(F.wide, row.across ** 2);
    if (row.held) top = Math.max(top, X);
    else F.low += Math.exp(logB[j] + X) * row.across ** 2;
  }
  F.omega = Math.exp(-eps) - F.hbar;
  F.tight = Math.exp(Math.min(eps + top, 600));
  return F.omega > LEAST_OMEGA ? F : null;
}

/** Check the inequality of Theorem B. @param {FunnelRow[]} rows @param {number} spread
 * @param {Centre} C @param {Forces} F
 * @param {{cut: number, slow: number, eta: number, split: number}} choice
 */
function closes(rows, spread, C, F, { cut, slow, eta, split }) {
  const R = F.R;
  const p = eta * C.theta / F.omega;
  let square = p * (spread + F.wide * F.hbar / C.theta ** 2) + F.wide * eta / C.theta;
  // The other bound uses R, which grows if there are slow rows.
  if (slow === 0) square = Math.min(square, p * (spread * (1 + F.tight) + F.low));
  const c = 0.5 * (1 + split) * square;
  if (!(1 - 0.5 * c > LEAST_ROOM)) return false;
  const b = slow * Math.exp(c - 1) / F.omega;
  const sums = { total: 0, most: 0, ways: 0, steepest: 0 };
  for (const [j, row] of rows.entries()) {
    const [X, grow] = [row.across * R, row.across * b / R];
    sums.steepest = Math.max(sums.steepest, grow);
    if (F.isHigh[j]) {
      const rate = row.delta - grow;
      if (!(rate > 0)) return false;
      const force = Math.exp(F.logB[j] + X);
      sums.total += force * (X / rate + grow / rate ** 2);
      sums.most += force * (X + grow / (Math.E * rate));
      sums.ways += force * row.across;
    } else if (!row.held && row.delta > cut) {
      const psi = b === 0 && 1 - c > X ? Math.exp(-X) * (X + c) : Math.exp(c - 1);
      const force = Math.exp(F.logB[j]) * psi;
      sums.total += force / row.delta;
      sums.most += force;
    }
  }
  const tau = 1 - sums.steepest;
  if (!(tau > LEAST_TAU)) return false;
  const weight = 0.5 * (1 + 1 / split) * p;
  if (weight > 0 && sums.ways > 0) {
    sums.total += weight * pairForces(rows, F, b);
    sums.most += weight * sums.ways ** 2;
  }
  const jump = eta * C.theta;
  const support = F.eps ** 2 / (8 * (1 - 0.5 * c) * C.theta ** 2) * (1 + (1 + F.hbar) / F.omega);
  const half = 0.5 * C.rho ** 2 + (sums.total + 2 * jump * sums.most) / F.omega
    + support * (0.5 / tau + jump);
  return Math.sqrt(2 * half) <= KEPT_RADIUS * R;
}

/** Σ_{j,k ∈ H} P_j P_k ‖A_j^⊥‖ ‖A_k^⊥‖ / (δ'_j + δ'_k). @param {FunnelRow[]} rows
 * @param {Forces} F @param {number} b
 */
function pairForces(rows, F, b) {
  const R = F.R;
  const high = rows.flatMap((row, j) => (F.isHigh[j]
    ? [[Math.exp(F.logB[j] + row.across * R) * row.across, row.delta - row.across * b / R]] : []));
  let total = 0;
  for (const [first, rate] of high) {
    for (const [second, other] of high) total += first * second / (rate + other);
  }
  return total;
}

/** log Ĝ, which no gradient in the funnel exceeds. @param {FunnelRow[]} rows @param {Centre} C
 * @param {Forces} F
 */
function logGradientBound(rows, C, F) {
  const powers = rows.map((row, j) => Math.log(row.length) + row.across * F.R
    + (row.held ? Math.log(row.dual) + F.eps : F.logB[j]));
  const largest = Math.max(...powers);
  const total = powers.reduce((sum, power) => sum + Math.exp(power - largest), 0);
  return C.zeta - C.g + largest + Math.log(total);
}

/** Find a longer step for which the inequality holds, here or in a wider funnel.
 * @param {Frame} frame @param {Centre} C @param {Forces} F @param {number} cut @param {number} eta
 */
function longestCovered(frame, C, { R }, cut, eta) {
  let best = eta;
  for (const wider of [1, 1.5, 2.5, 4]) {
    const F = forcesAt(frame, C, wider * R);
    if (!F) continue;
    const holds = (/** @type {number} */ step) => holdsWith(frame, C, F, cut, step);
    let high = Math.max(2 * best, 1e-3 / C.theta);
    while (holds(high)) [best, high] = [high, 2 * high];
    if (!holds(best)) continue;
    for (let k = 0; k < HALVINGS; k++) {
      const middle = 0.5 * (best + high);
      if (holds(middle)) best = middle;
      else high = middle;
    }
  }
  return best;
}
