// Softmax attention and its slope, exact in direction however far the softmax saturates: sums are
// over differences to the most likely token, and a common factor is kept as a logarithm.

import { accurateDot } from "./rows.js";

/** @typedef {import("./types.js").Data} Data */

/**
 * @typedef {object} Tokens  data as the loops read them; N tokens in all
 * @property {number} n  sequences
 * @property {number} d
 * @property {Int32Array} first  (n + 1): sequence i has the tokens first[i] … first[i + 1] − 1
 * @property {Float64Array} X  (N·d), without what the tokens of a sequence share
 * @property {Float64Array} z  (n·d)
 * @property {Float64Array} lengths  (n), ‖z_i‖
 * @property {Float64Array} gamma  (N), scores
 * @property {Float64Array} rise  (N), the same up to a constant per sequence, without its rounding
 */

/**
 * @typedef {object} Slope  −∇L in the logits is e^{logScale} c; arrays are buffers
 * @property {Float64Array} a  (N), logits
 * @property {Float64Array} c  (N), sums to zero over a sequence
 * @property {number} logScale
 * @property {Float64Array} e  (N), e^{a − max}, zero where that is negligible
 * @property {Float64Array} total  (n), Σ_t e
 * @property {Float64Array} u  (n), outputs
 * @property {Float64Array} logK  (n), log |ℓ'(u)| − log total
 * @property {Float64Array} sign  (n), −1 where the loss rises
 * @property {Int32Array} top  (n), most likely token, counted from the first of all
 */

/**
 * @typedef {object} Loss
 * @property {(u: number) => number} value
 * @property {(u: number) => number} logSlope  log |ℓ'|
 * @property {(u: number, drop: number) => number} rise  ℓ(u − drop) − ℓ(u), without cancellation
 * @property {(low: number, high: number) => number} bend  bound of |ℓ''/ℓ'| between two scores
 * @property {(low: number, high: number) => boolean} falls  whether ℓ' < 0 between two scores
 */

/** @param {number} x */
const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

/** @type {Record<string, Loss>} */
export const LOSSES = {
  logistic: {
    value: (u) => softplus(-u),
    logSlope: (u) => -softplus(u),
    rise: (u, drop) => Math.log1p(Math.expm1(drop) / (1 + Math.exp(u))),
    bend: (low, high) => 1 / (1 + Math.exp(-high)),
    falls: () => true,
  },
  exponential: {
    value: (u) => Math.exp(-u),
    logSlope: (u) => -u,
    rise: (u, drop) => Math.exp(-u) * Math.expm1(drop),
    bend: () => 1,
    falls: () => true,
  },
  linear: {
    value: (u) => -u,
    logSlope: () => 0,
    rise: (u, drop) => drop,
    bend: () => 0,
    falls: () => true,
  },
  squared: {
    value: (u) => (1 - u) ** 2,
    logSlope: (u) => Math.log(2 * Math.abs(1 - u)),
    rise: (u, drop) => drop * (2 * (1 - u) + drop),
    bend: (low, high) => (high < 1 ? 1 / (1 - high) : Infinity),
    falls: (low, high) => high < 1,
  },
  log: {
    value: (u) => -Math.log(u),
    logSlope: (u) => -Math.log(u),
    rise: (u, drop) => -Math.log1p(-drop / u),
    bend: (low) => (low > 0 ? 1 / low : Infinity),
    falls: (low) => low > 0,
  },
};

// Below these exponents, terms change no digit; above the last one, powers can be taken one by one.
const FAR = -45;
const FARTHER = -70;
const REPRESENTABLE = -500;
/** What coordinate c of all tokens has in common, if subtracting it is exact; else zero.
 * @param {number[][]} tokens @param {number} c
 */
function sharedOffset(tokens, c) {
  const column = tokens.map((x) => x[c]);
  const [low, high] = [Math.min(...column), Math.max(...column)];
  if (low > 0 && high <= 2 * low) return low;
  return high < 0 && low >= 2 * high ? high : 0;
}

/** Read data for the loops. @param {Data} data @returns {Tokens} */
export function readTokens(data) {
  const [n, d] = [data.X.length, data.v.length];
  const first = new Int32Array(n + 1);
  data.X.forEach((tokens, i) => (first[i + 1] = first[i] + tokens.length));
  const N = first[n];
  const T = {
    n,
    d,
    first,
    X: new Float64Array(N * d),
    z: Float64Array.from(data.z.flat()),
    lengths: Float64Array.from(data.z, (z) => Math.hypot(...z)),
    gamma: new Float64Array(N),
    rise: new Float64Array(N),
  };
  data.X.forEach((tokens, i) => {
    const offset = data.v.map((_, c) => sharedOffset(tokens, c));
    const own = tokens.map((x) => x.map((value, c) => value - offset[c]));
    T.X.set(own.flat(), first[i] * d);
    const shares = offset.some((value) => value !== 0);
    const gamma = tokens.map((x) => accurateDot(x, data.v));
    const rise = shares ? own.map((x) => accurateDot(x, data.v)) : gamma;
    for (const [target, values] of /** @type {const} */ ([[T.gamma, gamma], [T.rise, rise]])) {
      // The attention of a zero query never changes: its output is the mean, and it pulls nowhere.
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      target.set(values.map((value) => data.y[i] * (T.lengths[i] > 0 ? value : mean)), first[i]);
    }
  });
  return T;
}

/** Buffers of a slope. @param {Tokens} T @returns {Slope} */
export function newSlope(T) {
  const [tokens, sequences] = [() => new Float64Array(T.gamma.length), () => new Float64Array(T.n)];
  return {
    a: tokens(), c: tokens(), e: tokens(), logScale: 0, total: sequences(), u: sequences(),
    logK: sequences(), sign: sequences(), top: new Int32Array(T.n),
  };
}

/**
 * Compute the logits x_itᵀ W z_i, up to a constant per sequence.
 * @param {Tokens} T @param {Float64Array} W @param {Float64Array} a  written
 */
export function logitsAt(T, W, a) {
  const { n, d, first, X, z } = T;
  a.fill(0);
  for (let i = 0; i < n; i++) {
    for (let r = 0; r < d; r++) {
      let image = 0;
      for (let c = 0; c < d; c++) image += W[r * d + c] * z[i * d + c];
      for (let j = first[i]; j < first[i + 1]; j++) a[j] += X[j * d + r] * image;
    }
  }
}

/** Compute the slope at the logits S.a. @param {Tokens} T @param {Slope} S @param {Loss} loss */
export function slopeAt(T, S, loss) {
  let largest = -Infinity;
  for (let i = 0; i < T.n; i++) largest = Math.max(largest, weighSequence(T, S, loss, i));
  largest = largest > -Infinity ? largest : 0;
  for (let i = 0; i < T.n; i++) pullSequence(T, S, i, largest);
  S.logScale = largest - Math.log(T.n);
}

/** Softmax of sequence i; returns the largest log-weight of tokens with a lift.
 * @param {Tokens} T @param {Slope} S @param {Loss} loss @param {number} i
 */
function weighSequence(T, S, loss, i) {
  const { a, e } = S;
  const [begin, end] = [T.first[i], T.first[i + 1]];
  let top = begin;
  for (let j = begin + 1; j < end; j++) if (a[j] > a[top]) top = j;
  const [best, level] = [a[top], T.rise[top]];
  let total = 0;
  let mean = 0;
  let second = -Infinity;
  for (let j = begin; j < end; j++) {
    const gap = a[j] - best;
    const lift = T.rise[j] - level;
    e[j] = gap > FAR ? Math.exp(gap) : 0;
    total += e[j];
    mean += e[j] * lift;
    if (lift !== 0 && gap > second) second = gap;
  }
  const u = T.gamma[top] + mean / total;
  S.top[i] = top;
  S.total[i] = total;
  S.u[i] = u;
  S.sign[i] = 1;
  if (loss === LOSSES.squared) S.logK[i] = logOfRest(T, S, i, second) - 2 * Math.log(total) + Math.LN2;
  else if (loss === LOSSES.log && u < 0.5) S.logK[i] = -logOfScore(T, S, i);
  else S.logK[i] = loss.logSlope(u) - Math.log(total);
  return second + S.logK[i];
}

/** log |1 − u| plus that of the total, and the sign of 1 − u: all of it comes from other tokens if
 * the score of the most likely one is 1. @param {Tokens} T @param {Slope} S @param {number} i
 * @param {number} second
 */
function logOfRest(T, S, i, second) {
  const top = S.top[i];
  let rest = (1 - T.gamma[top]) * S.total[i];
  const scale = rest !== 0 || second === -Infinity ? 0 : second;
  for (let j = T.first[i]; j < T.first[i + 1]; j++) {
    const lift = T.rise[j] - T.rise[top];
    if (lift !== 0) rest -= lift * Math.exp(S.a[j] - S.a[top] - scale);
  }
  S.sign[i] = rest < 0 ? -1 : 1;
  return scale + Math.log(Math.abs(rest));
}

/** log Σ_t γ_t e^{a_t − max}; 0 if no score is positive. @param {Tokens} T @param {Slope} S
 * @param {number} i
 */
function logOfScore(T, S, i) {
  let [largest, total] = [-Infinity, 0];
  for (let turn = 0; turn < 2; turn++) {
    for (let j = T.first[i]; j < T.first[i + 1]; j++) {
      const power = S.a[j] - S.a[S.top[i]] + Math.log(Math.max(T.gamma[j], 0));
      if (turn === 0) largest = Math.max(largest, power);
      else if (power > -Infinity) total += Math.exp(power - largest);
    }
  }
  return total > 0 ? largest + Math.log(total) : 0;
}

/** c of sequence i, relative to e^largest: κ s l − s Σ κ s l. @param {Tokens} T @param {Slope} S
 * @param {number} i @param {number} largest
 */
function pullSequence(T, S, i, largest) {
  const { a, c, e } = S;
  const [begin, end, top] = [T.first[i], T.first[i + 1], S.top[i]];
  const level = T.rise[top];
  const power = S.logK[i] - largest;
  const factor = largest > REPRESENTABLE ? Math.exp(power) : 0;
  let total = 0;
  for (let j = begin; j < end; j++) {
    const lift = T.rise[j] - level;
    let weight = 0;
    if (lift !== 0) {
      if (factor > 0 && e[j] > 0) weight = e[j] * factor;
      else if (a[j] - a[top] + power > FARTHER) weight = Math.exp(Math.min(a[j] - a[top] + power, 0));
    }
    c[j] = S.sign[i] * weight * lift;
    total += c[j];
  }
  total /= S.total[i];
  for (let j = begin; j < end; j++) c[j] -= e[j] * total;
}

/** Attention of all tokens, per sequence. @param {Tokens} T @param {Float64Array} W */
export function attentionAt(T, W) {
  const a = new Float64Array(T.gamma.length);
  logitsAt(T, W, a);
  return Array.from({ length: T.n }, (_, i) => {
    const own = a.subarray(T.first[i], T.first[i + 1]);
    const best = Math.max(...own);
    const e = Array.from(own, (value) => Math.exp(value - best));
    const total = e.reduce((sum, value) => sum + value, 0);
    return e.map((value) => value / total);
  });
}
