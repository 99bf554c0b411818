// What a run ends in, and how sure that is: the verdicts of `am.predict`.

import {
  buildCase, caseLogits, directionOf, excessLoss, givenTokens, isProvable, likeliest,
  provedAt, stayingLoss,
} from "./guarantee.js";
import { scoreRounding, scores, tokenRows } from "./rows.js";
import { LOSSES } from "./softmax.js";
import { advanceRun, pathLength, startRun } from "./training.js";

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./training.js").Run} Run */
/** @typedef {import("./training.js").Settings} Settings */
/** @typedef {import("./guarantee.js").Case} Case */
/** @typedef {import("./guarantee.js").Solver} Solver */

/** @typedef {"guaranteed" | "guaranteed from this start" | "conjectured" | "undecided"} Verdict */

/**
 * @typedef {object} Ending  where a run was left
 * @property {Selection} selection
 * @property {Verdict} verdict
 * @property {"A" | "B" | ""} theorem
 * @property {number} since  the record of the proof; −1 where there is none
 * @property {number} settled  the record since which the selection is the same
 * @property {number} steps  steps taken
 * @property {boolean} resting  the last steps led nowhere
 * @property {number} share  least attention of a selected token there
 * @property {Matrix} W  there
 */

// The first record, and the ratio of one record to the one before.
const [FIRST_RECORD, RECORD_RATIO] = [32, Math.SQRT2];
// A selection that is the same since this share of the steps has settled; with this attention of
// every selected token it is clear. A run whose net way is a smaller share of its steps rests.
const [SETTLED_SINCE, CLEAR_SHARE] = [0.5, 0.9];
export const AHEAD_SHARE = 0.05;
// Runs are followed on in phases of 200 steps of 1/200 of the length of the weights, and of 100
// steps a tenth as long.
const [PHASES, LONG_STEPS, SHORT_STEPS, SHORTER, LEAST_STEP] = [20, 200, 100, 0.1, 1e-3];
// Selections that may be solved to show that no other one is locally optimal.
const SOLVED_AT_MOST = 3000;

/**
 * Follow a run until its end is proved.
 * @param {Data} data @param {Settings} settings
 * @param {number} budget  steps at most; 20,000 in `am.predict`
 * @param {Solver} solve  solveNorm
 * @returns {Ending}
 */
export function predictRun(data, settings, budget, solve) {
  const own = buildCase(data, settings, solve);
  const run = startRun(data, settings);
  const found = follow(own, run, budget);
  const everywhere = fromEveryStart(own, run);
  const chosen = everywhere || (found.resting && directionOf(own, own.best).status === "infeasible")
    ? own.best : found.selection;
  const verdict = everywhere ? "guaranteed" : verdictOf(own, run, found);
  return { ...found, selection: givenTokens(own, chosen), verdict, steps: run.step, W: run.W };
}

/** @typedef {ReturnType<typeof follow>} Found */

/** Train until a theorem holds, or the budget is used up. @param {Case} own @param {Run} run
 * @param {number} budget
 */
export function follow(own, run, budget) {
  const { lr, normalize } = run.settings;
  const provable = isProvable(run.settings);
  const found = {
    /** @type {Selection} */ selection: [], theorem: /** @type {"A" | "B" | ""} */ (""), since: -1,
    settled: 0, share: 0, resting: false, parted: false, led: false, early: false,
  };
  for (const moment of recordSteps(budget)) {
    const before = run.parts[0].y.slice();
    const count = moment - run.step;
    advanceRun(run, count);
    if (count > 0 && normalize) {
      found.resting = pathLength(run, before) < AHEAD_SHARE * count * lr;
    }
    const a = caseLogits(own, run.W);
    const { selection, share } = likeliest(own, a);
    if (selection.join() !== found.selection.join()) found.settled = moment;
    Object.assign(found, { selection, share, early: found.settled <= SETTLED_SINCE * moment });
    if (!provable) continue;
    found.theorem = provedAt(own, a, run.W, lr, !normalize).theorem;
    if (found.theorem) {
      const end = found.theorem === "A" ? own.best : selection;
      return { ...found, since: moment, resting: false, selection: end };
    }
  }
  return found.resting ? found : { ...found, ...followedOn(own, run, found) };
}

/** Records, geometrically spaced. @param {number} budget */
export function recordSteps(budget) {
  const found = [0];
  for (let size = FIRST_RECORD; size < budget; size *= RECORD_RATIO) found.push(Math.floor(size));
  return [...found, budget];
}

/** Follow a run on in long steps, until the flow is proved to stay: what it should end in.
 * @param {Case} own @param {Run} run
 * @param {{selection: Selection, settled: number, share: number}} found
 */
function followedOn(own, run, { selection, settled, share }) {
  const { end, proved } = flowEnd(own, run);
  const other = end.join() !== selection.join();
  // What cannot be proved for other norms may still be seen: the flow leaves the selection.
  const seen = other && !["fro", "nuc"].includes(String(own.norm));
  if (!proved || !other) return { selection, parted: seen, led: proved };
  const stayed = settled <= SETTLED_SINCE * run.step && share > CLEAR_SHARE;
  const parted = stayed && locality(own, selection) !== "left";
  return { selection: parted ? selection : end, parted, led: true };
}

/** @param {Case} own @param {Run} run */
function flowEnd(own, run) {
  const { settings, parts } = run;
  const factors = parts.length > 1;
  const [{ x }, Q] = parts;
  const start = factors ? { K: x, Q: Q.x } : x;
  const on = startRun(own.given, { ...settings, start, normalize: true });
  let end = own.best;
  for (let phase = 0; phase < PHASES; phase++) {
    const length = pathLength(on, new Float64Array(x.length));
    on.settings.lr = Math.max(length / LONG_STEPS, LEAST_STEP);
    advanceRun(on, LONG_STEPS);
    on.settings.lr *= SHORTER;
    advanceRun(on, SHORT_STEPS);
    const a = caseLogits(own, on.W);
    end = likeliest(own, a).selection;
    if (isProvable(settings)) {
      const { theorem } = provedAt(own, a, on.W, 0, false);
      if (theorem) return { end: theorem === "A" ? own.best : end, proved: true };
    } else if (end.join() === own.best.join() && !own.tied && own.loss !== LOSSES.squared) {
      if (excessLoss(own, a) < stayingLoss(own, factors ? 0.5 : 1)) return { end, proved: true };
    }
  }
  return { end, proved: false };
}

/** Whether nothing pulls away from a selection. @param {Case} own @param {Selection} selection
 * @returns {"local" | "left" | "unknown"}
 */
function locality(own, selection) {
  const { status, support } = directionOf(own, selection);
  if (status !== "optimal") return status === "infeasible" ? "left" : "unknown";
  const [gamma, doubt] = [scores(own.data), scoreRounding(own.data)];
  const { sequence, other } = tokenRows(own.data, selection);
  const pulled = support.some((tight, m) => {
    const [i, t] = [sequence[m], other[m]];
    return tight && gamma[i][t] >= gamma[i][selection[i]] - doubt[i];
  });
  return pulled ? "left" : "local";
}

/** Whether the loss falls on the interval of the scores (paper A, Assumption A). @param {Case} own */
function isRegular({ tokens, loss }) {
  return loss.falls(Math.min(...tokens.gamma), Math.max(...tokens.gamma));
}

/** @param {Case} own @param {Run} run @param {Found} found @returns {Verdict} */
function verdictOf(own, run, found) {
  if (found.theorem) return "guaranteed from this start";
  // No norm is known for mirror or other steepest descent on K and Q.
  if (run.settings.parameter === "KQ" && own.norm !== "nuc") return "undecided";
  const calm = found.share > CLEAR_SHARE && !found.resting && !found.parted && found.early;
  const likely = (calm || (found.led && !found.parted)) && isRegular(own);
  return likely && locality(own, found.selection) === "local" ? "conjectured" : "undecided";
}

/**
 * Whether a theorem promises the best tokens from every start: for one sequence whose other tokens
 * have equal scores (paper A, Theorem 4); or if the first step from zero selects them (Theorem 6), no
 * point is stationary, and no other selection is locally optimal.
 * @param {Case} own @param {Run} run
 */
function fromEveryStart(own, run) {
  const { data, gaps, best, tied, copies } = own;
  if (copies.some((count) => count > 0)) return false;
  const sizes = data.X.map((tokens) => tokens.length);
  if (sizes.every((size) => size === 1)) return true;
  if (tied || !isProvable(run.settings) || !isRegular(own)) return false;
  if (directionOf(own, best).status !== "optimal") return false;
  const doubt = scoreRounding(data);
  const others = gaps.map((row, i) => row.filter((_, t) => t !== best[i]).sort((a, b) => a - b));
  const exact = scores(data).map((row, i) => new Set(row.filter((_, t) => t !== best[i])).size);
  if (data.X.length === 1 && exact[0] === 1) return true;
  const distinct = others.every((row, i) => row.every((gap, t) => t === 0 || gap - row[t - 1] > doubt[i]));
  if (!distinct || sizes.reduce((a, b) => a * b, 1) > SOLVED_AT_MOST) return false;
  return firstSeparates(own, run) && oneSided(own) && onlyLocal(own, sizes);
}

/** Whether the first gradient step from zero puts the best tokens on top. @param {Case} own
 * @param {Run} run
 */
function firstSeparates(own, run) {
  const first = startRun(own.data, { loss: run.settings.loss, lr: 1 });
  advanceRun(first, 1);
  const a = caseLogits(own, first.W);
  const { first: begin, lengths } = own.tokens;
  const size = run.tokens.n * Math.max(...own.gaps.map((row) => row.length));
  return own.best.every((chosen, i) => own.data.X[i].every((x, t) => {
    const length = Math.hypot(...x.map((value, c) => value - own.data.X[i][chosen][c])) * lengths[i];
    const noise = 4 * 2 ** -52 * size * length;
    return t === chosen || a[begin[i] + chosen] - a[begin[i] + t] > noise;
  }));
}

/** Whether some u has y_i uᵀz_i > 0 for all i: then no point is stationary. @param {Case} own */
function oneSided({ data, solve }) {
  const zero = data.v.map(() => 0);
  const X = data.y.map((y) => [[y, ...zero.slice(1)], zero]);
  return solve({ ...data, X }, data.y.map(() => 0), "fro").status === "optimal";
}

/** Whether the best tokens are the only locally optimal selection. @param {Case} own
 * @param {number[]} sizes
 */
function onlyLocal(own, sizes) {
  if (locality(own, own.best) !== "local") return false;
  const selection = sizes.map(() => 0);
  for (;;) {
    const other = selection.join() !== own.best.join();
    if (other && locality(own, selection.slice()) !== "left") return false;
    let i = 0;
    while (i < sizes.length && ++selection[i] === sizes[i]) selection[i++] = 0;
    if (i === sizes.length) return true;
  }
}
