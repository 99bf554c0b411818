// Training as `am.train` does it: gradient, mirror and steepest descent on W or on (K, Q).

import { singularValues } from "./algebra.js";
import { LOSSES, attentionAt, logitsAt, newSlope, readTokens, slopeAt } from "./softmax.js";
import { balancedFactors, polarFactor } from "./singular.js";

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {{K: Matrix, Q: Matrix}} Factors  W = K Qᵀ */

/**
 * @typedef {object} Settings
 * @property {"gd" | "mirror" | "steepest"} [method]
 * @property {"W" | "KQ"} [parameter]
 * @property {"fro" | "max" | "spectral"} [norm]  of steepest descent
 * @property {number} [p]  of mirror descent
 * @property {number} [lr]
 * @property {boolean} [normalize]  divide the gradient by its dual norm; with (K, Q) each its own
 * @property {string} [loss]  a name in LOSSES
 * @property {Matrix | Factors} [start]  W(0), zero by default; with "KQ" factors, or W(0) to factor
 */

/**
 * @typedef {object} Part  trained weights, d × d
 * @property {Float64Array} x
 * @property {Float64Array} y  ∇ψ(x) of mirror descent
 * @property {Float64Array} D  −∇L / e^{logScale}
 */

/**
 * @typedef {object} Run
 * @property {Required<Omit<Settings, "start">>} settings
 * @property {import("./softmax.js").Tokens} tokens
 * @property {import("./softmax.js").Slope} slope
 * @property {Part[]} parts  W, or K and Q
 * @property {Matrix} W
 * @property {Matrix} D  −∇L in W
 * @property {number} step  steps taken
 */

/**
 * @typedef {object} Measures
 * @property {number} loss  mean over sequences
 * @property {number} logExcess  log of the loss above that of the best tokens, which never underflows;
 *   NaN if the loss is lower, as (1 − u)² may be
 * @property {number} probability  largest attention, mean over sequences
 * @property {Selection} selection  most likely tokens
 * @property {number} logGradient  log ‖∇L‖_F in the trained weights
 */

/** @type {Required<Omit<Settings, "start">>} */
const DEFAULTS = {
  method: "gd", parameter: "W", norm: "fro", p: 2, lr: 0.1, normalize: true, loss: "logistic",
};
// A gradient below this share of the terms that it sums is rounding: the weights rest.
const NOISE = 16 * 2 ** -52;

/** sign(x) |x|^r @param {number} x @param {number} r */
const signedPower = (x, r) => (r === 1 ? x : Math.sign(x) * Math.abs(x) ** r);

/** Start a run. @param {Data} data @param {Settings} settings @returns {Run} */
export function startRun(data, settings) {
  const own = { ...DEFAULTS, ...settings };
  const tokens = readTokens(data);
  const d = tokens.d;
  const start = settings.start ?? new Float64Array(d * d);
  const power = own.method === "mirror" ? own.p - 1 : 1;
  /** @type {(x: Float64Array) => Part} */
  const part = (x) => ({
    x: x.slice(),
    y: x.map((value) => signedPower(value, power)),
    D: new Float64Array(x.length),
  });
  const factors = "K" in start ? start : own.parameter === "KQ" ? balancedFactors(start) : null;
  const parts = factors ? [part(factors.K), part(factors.Q)] : [part(/** @type {Matrix} */ (start))];
  const [W, D] = [new Float64Array(d * d), new Float64Array(d * d)];
  const run = { settings: own, tokens, slope: newSlope(tokens), parts, W, D, step: 0 };
  runW(run);
  return run;
}

/** Take steps, in place. @param {Run} run @param {number} steps */
export function advanceRun(run, steps) {
  const { tokens, slope, settings } = run;
  const loss = LOSSES[settings.loss];
  for (let k = 0; k < steps; k++) {
    logitsAt(tokens, runW(run), slope.a);
    slopeAt(tokens, slope, loss);
    pullRun(run);
    for (const part of run.parts) movePart(part, slope.logScale, settings);
  }
  run.step += steps;
  runW(run);
}

/** The weights W, or K Qᵀ; the array is that of the run. @param {Run} run @returns {Matrix} */
export function runW(run) {
  const { W, parts } = run;
  const d = run.tokens.d;
  if (parts.length === 1) {
    W.set(parts[0].x);
    return W;
  }
  const [{ x: K }, { x: Q }] = parts;
  for (let r = 0; r < d; r++) {
    for (let c = 0; c < d; c++) {
      let sum = 0;
      for (let k = 0; k < d; k++) sum += K[r * d + k] * Q[c * d + k];
      W[r * d + c] = sum;
    }
  }
  return W;
}

/** How far weights went from ∇ψ(x) = y, in the norm of their steps. @param {Run} run
 * @param {Float64Array} y  of the first part
 */
export function pathLength(run, y) {
  const { method, p, norm } = run.settings;
  const way = run.parts[0].y.map((value, j) => value - y[j]);
  if (method !== "steepest") return powerNorm(way, method === "mirror" ? p / (p - 1) : 2);
  if (norm === "fro") return frobeniusOf(way);
  if (norm === "max") return way.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return Math.max(...singularValues(way));
}

/** Attention of every token. @param {Run} run @returns {number[][]} */
export function attention(run) {
  return attentionAt(run.tokens, run.W);
}

/** Measure where a run is, as `am.train` records it. @param {Run} run @returns {Measures} */
export function measure(run) {
  const { tokens: T, slope: S } = run;
  const name = run.settings.loss;
  const loss = LOSSES[name];
  logitsAt(T, run.W, S.a);
  slopeAt(T, S, loss);
  pullRun(run);
  const squares = run.parts.reduce((sum, part) => sum + frobeniusOf(part.D) ** 2, 0);
  const losses = Array.from(S.u, (u, i) => {
    const log = S.logK[i] + Math.log(S.total[i]);
    if (name === "squared") return Math.exp(2 * (log - Math.LN2));
    return name === "log" ? log : loss.value(u);
  });
  return {
    loss: losses.reduce((sum, value) => sum + value, 0) / T.n,
    logExcess: logExcessOf(T, S, loss),
    probability: S.total.reduce((sum, total) => sum + 1 / total, 0) / T.n,
    selection: Array.from(S.top, (top, i) => top - T.first[i]),
    logGradient: 0.5 * Math.log(Math.max(squares, 1e-300)) + S.logScale,
  };
}

/** log (L − L⋆), from D_i = Σ_t s_it (γ_i1 − γ_it). @param {import("./softmax.js").Tokens} T
 * @param {import("./softmax.js").Slope} S @param {import("./softmax.js").Loss} loss
 */
function logExcessOf(T, S, loss) {
  const logs = Array.from(S.top, (top, i) => {
    let best = T.first[i];
    for (let j = best; j < T.first[i + 1]; j++) if (T.gamma[j] > T.gamma[best]) best = j;
    let [largest, sum] = [-Infinity, 0];
    for (let turn = 0; turn < 2; turn++) {
      for (let j = T.first[i]; j < T.first[i + 1]; j++) {
        const log = S.a[j] - S.a[top] + Math.log(Math.max(T.rise[best] - T.rise[j], 0));
        if (turn === 0) largest = Math.max(largest, log);
        else if (log > -Infinity) sum += Math.exp(log - largest);
      }
    }
    const log = largest + Math.log(sum) - Math.log(S.total[i]);
    if (largest === -Infinity) return -Infinity;
    return log > -600 ? Math.log(loss.rise(T.gamma[best], Math.exp(log)))
      : loss.logSlope(T.gamma[best]) + log;
  });
  const largest = Math.max(...logs);
  if (largest === -Infinity) return largest;
  return largest + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - largest), 0) / T.n);
}

/** Compute −∇L / e^{logScale} in W and in the parts. @param {Run} run */
function pullRun(run) {
  const { tokens: T, D } = run;
  const size = pullInto(T, run.slope.c, D);
  let largest = 0;
  for (let j = 0; j < D.length; j++) largest = Math.max(largest, Math.abs(D[j]));
  if (largest <= NOISE * size) D.fill(0);
  if (run.parts.length === 1) {
    run.parts[0].D.set(D);
    return;
  }
  const [K, Q] = run.parts;
  const d = T.d;
  K.D.fill(0);
  Q.D.fill(0);
  for (let r = 0; r < d; r++) {
    for (let c = 0; c < d; c++) {
      for (let k = 0; k < d; k++) {
        K.D[r * d + k] += D[r * d + c] * Q.x[c * d + k];
        Q.D[c * d + k] += D[r * d + c] * K.x[r * d + k];
      }
    }
  }
}

/** Compute D = Σ c_it x_it z_iᵀ, tokens relative to the one with the largest c; returns the size of
 * its terms. @param {import("./softmax.js").Tokens} T @param {Float64Array} c @param {Matrix} D
 */
function pullInto(T, c, D) {
  const { n, d, first, X, z, lengths } = T;
  let size = 0;
  D.fill(0);
  for (let i = 0; i < n; i++) {
    const [begin, end] = [first[i], first[i + 1]];
    let top = begin;
    for (let j = begin + 1; j < end; j++) if (Math.abs(c[j]) > Math.abs(c[top])) top = j;
    let square = 0;
    for (let r = 0; r < d; r++) {
      let key = 0;
      for (let j = begin; j < end; j++) key += c[j] * (X[j * d + r] - X[top * d + r]);
      for (let k = 0; k < d; k++) D[r * d + k] += key * z[i * d + k];
      square += key * key;
    }
    size += Math.sqrt(square) * lengths[i];
  }
  return size;
}

/** @param {Float64Array} x */
function frobeniusOf(x) {
  let square = 0;
  for (let j = 0; j < x.length; j++) square += x[j] * x[j];
  return square > 1e-280 ? Math.sqrt(square) : Math.hypot(...x);
}

/** The entrywise ℓq norm. @param {Float64Array} x @param {number} q */
function powerNorm(x, q) {
  if (q === 2) return frobeniusOf(x);
  let [largest, total] = [0, 0];
  for (let j = 0; j < x.length; j++) largest = Math.max(largest, Math.abs(x[j]));
  if (largest === 0) return 0;
  for (let j = 0; j < x.length; j++) total += (Math.abs(x[j]) / largest) ** q;
  return largest * total ** (1 / q);
}

/** Take a step with one part. @param {Part} part @param {number} logScale
 * @param {Run["settings"]} settings
 */
function movePart(part, logScale, settings) {
  const { x, y, D } = part;
  const { method, norm, normalize, lr } = settings;
  const p = method === "mirror" ? settings.p : 2;
  // D becomes a direction of norm one.
  const unit = method === "steepest" && norm !== "fro";
  const size = unit ? steepen(part, norm) : powerNorm(D, p / (p - 1));
  if (size === 0) return;
  const factor = normalize ? (unit ? lr : lr / size)
    : lr * Math.exp(logScale) * (unit ? size : 1);
  for (let j = 0; j < x.length; j++) {
    y[j] += factor * D[j];
    x[j] = p === 2 ? y[j] : signedPower(y[j], 1 / (p - 1));
  }
}

/** Replace D by the direction of steepest descent; returns the dual norm of D.
 * @param {Part} part @param {string} norm
 */
function steepen(part, norm) {
  if (norm === "spectral") return polarFactor(part.D);
  let size = 0;
  for (let j = 0; j < part.D.length; j++) {
    size += Math.abs(part.D[j]);
    part.D[j] = Math.sign(part.D[j]);
  }
  return size;
}
