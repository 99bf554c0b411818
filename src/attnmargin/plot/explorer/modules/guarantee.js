// Guaranteed from here: when gradient descent on W can no longer leave a selection. Theorem A: the
// loss is below that of every other selection. Theorem B (funnel.js): W is in a funnel around a
// locally optimal direction. The letters are those of docs/guarantees.md.

import { buildFrame, findFunnel } from "./funnel.js";
import { scoreRounding, scores } from "./rows.js";
import { LOSSES, logitsAt, readTokens } from "./softmax.js";

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./types.js").Solution} Solution */
/** @typedef {import("./softmax.js").Tokens} Tokens */
/** @typedef {import("./training.js").Settings} Settings */

/** @typedef {"fro" | "nuc" | "max" | "spectral" | number} NormName */
/** @typedef {(data: Data, selection: Selection, norm: NormName) => Solution} Solver  solveNorm */

/**
 * Data whose runs are to be proved. Equal tokens of a sequence are one, with the attention of all.
 * @typedef {object} Case
 * @property {Data} given
 * @property {Data} data  without copies
 * @property {number[][]} index  their tokens in the given data
 * @property {Float64Array} copies  log of how often each occurs
 * @property {Tokens} tokens
 * @property {import("./softmax.js").Loss} loss
 * @property {number[][]} gaps  best score minus score; 0 within rounding
 * @property {number[]} doubt  within which distance scores of a sequence count as equal
 * @property {Selection} best
 * @property {boolean} tied  several tokens of a sequence have its best score
 * @property {NormName} norm
 * @property {Solver} solve
 * @property {Map<string, Solution>} solutions  that were asked for, by selection
 * @property {Map<string, import("./funnel.js").Frame>} frames
 */

/**
 * @typedef {object} Level  what the loss at a point proves (Theorem A)
 * @property {boolean} proved
 * @property {number} longest  ℓ_A
 * @property {number} gradient  bound of ‖∇L‖ for ever
 * @property {number} share
 */

// What is left for rounding; bisections; attention that counts as all.
const SAFE_SHARE = 1 - 1e-9;
const BISECTIONS = 80;
export const SETTLED_SHARE = 1 - 1e-3;
// Plain steps in a funnel may be this many times as long as the first bound of the gradient says.
const PLAIN_ROOM = 2;

/** The norm of the direction that a method implies. @param {Settings} settings @returns {NormName} */
export function impliedNorm({ method = "gd", parameter = "W", p = 2, norm = "fro" }) {
  if (method === "steepest" && norm !== "fro") return norm;
  if (method === "mirror" && p !== 2) return p;
  return parameter === "KQ" ? "nuc" : "fro";
}

/** Whether the theorems are about these steps. @param {Settings} settings */
export function isProvable(settings) {
  return (settings.parameter ?? "W") === "W" && impliedNorm(settings) === "fro";
}

/**
 * Read data once for all guarantees.
 * @param {Data} given @param {Settings} settings @param {Solver} solve
 * @returns {Case}
 */
export function buildCase(given, settings, solve) {
  const names = given.X.map((tokens) => tokens.map((x) => x.join()));
  const index = names.map((own) => own.flatMap((name, t) => (own.indexOf(name) === t ? [t] : [])));
  const data = { ...given, X: given.X.map((tokens, i) => index[i].map((t) => tokens[t])) };
  const copies = Float64Array.from(index.flatMap((own, i) =>
    own.map((t) => Math.log(names[i].filter((name) => name === names[i][t]).length))));
  const tokens = readTokens(data);
  const { d, first } = tokens;
  const relative = data.X.map((own, i) =>
    own.map((x, t) => x.map((_, c) => tokens.X[(first[i] + t) * d + c])));
  const [doubt, wide] = [scoreRounding({ ...data, X: relative }), scoreRounding(data)];
  const gamma = scores(data);
  const best = gamma.map((row) => row.indexOf(Math.max(...row)));
  const gaps = relative.map((own, i) => own.map((_, t) => {
    const gap = tokens.rise[first[i] + best[i]] - tokens.rise[first[i] + t];
    return gap > doubt[i] ? gap : 0;
  }));
  const tied = gamma.some((row, i) => row.filter((x) => x >= row[best[i]] - wide[i]).length > 1);
  return {
    given, data, index, copies, tokens, loss: LOSSES[settings.loss ?? "logistic"], gaps, doubt, best, tied,
    norm: impliedNorm(settings), solve, solutions: new Map(), frames: new Map(),
  };
}

/** Compute something for a selection once. @template T @param {Map<string, T>} kept
 * @param {Selection} selection @param {() => T} compute @returns {T}
 */
function once(kept, selection, compute) {
  const key = selection.join();
  const known = kept.get(key) ?? compute();
  kept.set(key, known);
  return known;
}

/** The direction of a selection. @param {Case} own @param {Selection} selection */
export function directionOf(own, selection) {
  return once(own.solutions, selection, () => own.solve(own.data, selection, own.norm));
}

/** Logits, those of copies together. @param {Case} own @param {Matrix} W */
export function caseLogits(own, W) {
  const a = new Float64Array(own.copies.length);
  logitsAt(own.tokens, W, a);
  return a.map((value, j) => value + own.copies[j]);
}

/** The most likely tokens, and the least attention of one of them.
 * @param {Case} own @param {Float64Array} a  logits
 */
export function likeliest(own, a) {
  const { n, first } = own.tokens;
  let share = 1;
  const selection = Array.from({ length: n }, (_, i) => {
    const logits = a.subarray(first[i], first[i + 1]);
    const best = Math.max(...logits);
    share = Math.min(share, 1 / logits.reduce((sum, value) => sum + Math.exp(value - best), 0));
    return logits.indexOf(best);
  });
  return { selection, share };
}

/** A selection as one of the given data. @param {Case} own @param {Selection} selection */
export function givenTokens(own, selection) {
  return selection.map((t, i) => own.index[i][t]);
}

/** The loss above that of the best tokens. @param {Case} own @param {Float64Array} a  logits */
export function excessLoss({ tokens, gaps, best, loss }, a) {
  const terms = gaps.map((own, i) => {
    const logits = a.subarray(tokens.first[i], tokens.first[i + 1]);
    const top = Math.max(...logits);
    let [total, drop] = [0, 0];
    own.forEach((gap, t) => {
      total += Math.exp(logits[t] - top);
      drop += Math.exp(logits[t] - top) * gap;
    });
    return loss.rise(tokens.gamma[tokens.first[i] + best[i]], drop / total);
  });
  return terms.reduce((sum, term) => sum + term, 0) / tokens.n;
}

/** The excess loss below which best tokens keep more than 1 − q of the attention; with q = 1 it is
 * that of any other selection. @param {Case} own @param {number} q
 */
export function stayingLoss({ tokens, gaps, best, loss }, q) {
  const costs = gaps.map((own, i) => {
    const gap = Math.min(...own.filter((value) => value > 0));
    return gap < Infinity ? loss.rise(tokens.gamma[tokens.first[i] + best[i]], q * gap) : Infinity;
  });
  return Math.min(...costs) / tokens.n;
}

/** The largest x in [0, high] that is good, from below (`up` false) or above.
 * @param {number} high @param {(x: number) => boolean} good @param {boolean} [up]
 */
function bisect(high, good, up = false) {
  let low = 0;
  for (let k = 0; k < BISECTIONS; k++) {
    const middle = 0.5 * (low + high);
    if (good(middle)) low = middle;
    else high = middle;
  }
  return up ? high : low;
}

/** Check Theorem A. @param {Case} own @param {Float64Array} a  logits @returns {Level} */
function levelAt(own, a) {
  const { tokens, data, gaps, best, loss } = own;
  const none = { proved: false, longest: 0, gradient: 0, share: 0 };
  const excess = excessLoss(own, a);
  if (own.tied || !(excess < SAFE_SHARE * stayingLoss(own, 1))) return none;
  const theta = provedMargin(own);
  if (!(theta > 0)) return none;
  let [bent, wide, away, gradient, longestRow] = [0, 0, 0, 0, 0];
  for (let i = 0; i < tokens.n; i++) {
    const length = tokens.lengths[i];
    const gap = Math.min(...gaps[i].filter((value) => value > 0));
    const rows = data.X[i].map((x) => length * distance(x, data.X[i][best[i]]));
    const most = Math.max(...rows);
    longestRow = Math.max(longestRow, most);
    if (gap === Infinity) continue;
    const top = tokens.gamma[tokens.first[i] + best[i]];
    const bound = bisect(gap, (x) => loss.rise(top, x) <= excess * tokens.n, true);
    const lost = Math.min(bound / gap, 1);
    const pull = Math.min(bound, 0.25 * Math.max(...gaps[i]));
    const apart = Math.max(...data.X[i].flatMap((x) => data.X[i].map((o) => length * distance(x, o))));
    away = Math.max(away, lost);
    bent = Math.max(bent, loss.bend(top - bound, top) * pull);
    wide = Math.max(wide, Math.min(apart, (1 + lost) * most));
    gradient += Math.exp(Math.max(loss.logSlope(top - bound), loss.logSlope(top))) * pull / tokens.n;
  }
  if (!Number.isFinite(bent)) return none;
  const longest = SAFE_SHARE * longestStep(theta, 1 + bent, wide);
  return { proved: true, longest, gradient: gradient * longestRow, share: 1 - away };
}

/** ℓ_A, from below. @param {number} theta @param {number} slope @param {number} wide */
function longestStep(theta, slope, wide) {
  const b = slope * wide;
  if (!(b > 0)) return Infinity;
  const high = 4 * slope * theta / b ** 2 + 4 / b;
  return bisect(high, (l) => Math.expm1(b * l) - b * l <= theta * slope * l);
}

/** @param {number[]} x @param {number[]} other */
const distance = (x, other) => Math.hypot(...x.map((value, c) => value - other[c]));

/** Θ from below, proved by any W that separates the best tokens; 0 if it does not.
 * @param {Case} own
 */
function provedMargin(own) {
  const { W, status } = directionOf(own, own.best);
  if (status === "infeasible") return 0;
  const { first } = own.tokens;
  const a = new Float64Array(own.copies.length);
  logitsAt(own.tokens, W, a);
  let least = Infinity;
  own.best.forEach((chosen, i) => {
    for (let j = first[i]; j < first[i + 1]; j++) {
      if (j !== first[i] + chosen) least = Math.min(least, a[first[i] + chosen] - a[j]);
    }
  });
  return least === Infinity ? 0 : Math.max(least, 0) / Math.hypot(...W);
}

/** The frame of a selection for Theorem B. @param {Case} own @param {Selection} selection */
export function frameOf(own, selection) {
  return once(own.frames, selection, () => buildFrame(own, selection, directionOf(own, selection)));
}

/**
 * Check quickly whether a theorem covers the steps to come from W: of length `lr`, or plain ones
 * at this rate; 0 is gradient flow.
 * @param {Case} own @param {Float64Array} a  logits at W @param {Matrix} W @param {number} lr
 * @param {boolean} plain
 * @returns {{theorem: "A" | "B" | "", step: number, level: Level}}  a step that both cover
 */
export function provedAt(own, a, W, lr, plain) {
  const level = levelAt(own, a);
  const covered = level.proved && (plain ? level.longest >= lr * level.gradient : level.longest >= lr);
  if (covered) return { theorem: "A", step: plain ? level.gradient * lr : lr, level };
  const { selection, share } = likeliest(own, a);
  if (!(share > 0.5)) return { theorem: "", step: 0, level };
  const frame = frameOf(own, selection);
  const flow = findFunnel(frame, W, plain ? 0 : lr);
  if (!flow.proved) return { theorem: "", step: 0, level };
  if (!plain) return { theorem: "B", step: lr, level };
  const step = PLAIN_ROOM * lr * Math.exp(flow.logGradient);
  const found = findFunnel(frame, W, step);
  const holds = found.proved && step >= lr * Math.exp(found.logGradient);
  return { theorem: holds ? "B" : "", step, level };
}
