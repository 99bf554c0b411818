// Many starts W(0), and the selection that training from each ends in.

import {
  SETTLED_SHARE, buildCase, caseLogits, givenTokens, isProvable, likeliest, provedAt,
} from "./guarantee.js";
import { AHEAD_SHARE, recordSteps } from "./prediction.js";
import { advanceRun, pathLength, startRun } from "./training.js";

// After so many records at which a run goes nowhere, it is left.
const RESTS = 3;

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./training.js").Settings} Settings */
/** @typedef {import("./guarantee.js").Solver} Solver */

/**
 * @typedef {object} StartMap
 * @property {Int32Array} end  per start, index into selections; −1 where not yet computed
 * @property {Uint8Array} level  per start: 2 guaranteed from this start, 1 settled, 0 open
 * @property {Selection[]} selections  that were found
 * @property {number} done  starts that have been followed
 * @property {Data} data
 * @property {Settings} settings
 * @property {(Matrix | null)[]} starts
 * @property {number} budget
 * @property {import("./guarantee.js").Case} own
 */

/**
 * Begin a map. With "KQ" each start is factored, K and Q of the same size.
 * @param {Data} data @param {Settings} settings
 * @param {(Matrix | null)[]} starts  none where nothing is to be followed
 * @param {number} budget  steps per start at most
 * @param {Solver} solve  solveNorm
 * @returns {StartMap}
 */
export function newStartMap(data, settings, starts, budget, solve) {
  return {
    end: new Int32Array(starts.length).fill(-1), level: new Uint8Array(starts.length),
    selections: [], done: 0, data, settings, starts, budget, own: buildCase(data, settings, solve),
  };
}

/** Follow more starts, spread over all; returns whether any are left.
 * @param {StartMap} map @param {number} count
 */
export function growStartMap(map, count) {
  const all = map.end.length;
  const stride = coprimeStride(all);
  for (const last = Math.min(map.done + count, all); map.done < last; map.done++) {
    growCell(map, (map.done * stride) % all);
  }
  return map.done < all;
}

/** A step near the golden section of `all` that visits every cell. @param {number} all */
function coprimeStride(all) {
  const divisor = (/** @type {number} */ a, /** @type {number} */ b) => {
    while (b > 0) [a, b] = [b, a % b];
    return a;
  };
  let stride = Math.max(Math.round(all * 0.618), 1);
  while (divisor(stride, all) > 1) stride++;
  return stride;
}

/** @param {StartMap} map @param {number} cell */
function growCell(map, cell) {
  const start = map.starts[cell];
  if (!start) return;
  const { selection, level } = endFrom(map, start);
  const key = selection.join();
  let index = map.selections.findIndex((known) => known.join() === key);
  if (index < 0) index = map.selections.push(selection) - 1;
  map.end[cell] = index;
  map.level[cell] = level;
}

/** Train from a start until the guarantee, where there is one, or until it has settled.
 * @param {StartMap} map @param {Matrix} start
 */
function endFrom({ data, settings, budget, own }, start) {
  const run = startRun(data, { ...settings, start });
  const { lr, normalize } = run.settings;
  const provable = isProvable(settings);
  let now = { selection: own.best, share: 0 };
  let rests = 0;
  for (const moment of recordSteps(budget)) {
    const [before, count] = [run.parts[0].y.slice(), moment - run.step];
    advanceRun(run, count);
    rests = normalize && pathLength(run, before) < AHEAD_SHARE * count * lr ? rests + 1 : 0;
    if (rests === RESTS) break;
    const logits = caseLogits(own, run.W);
    now = likeliest(own, logits);
    const theorem = provable ? provedAt(own, logits, run.W, lr, !normalize).theorem : "";
    const selection = givenTokens(own, theorem === "A" ? own.best : now.selection);
    if (theorem) return { selection, level: 2 };
    if (!provable && now.share >= SETTLED_SHARE) return { selection, level: 1 };
  }
  return { selection: givenTokens(own, now.selection), level: now.share >= SETTLED_SHARE ? 1 : 0 };
}
