// The plane of starts W(0) = a E₁ + b E₂, coloured by the selection that training ends in.

import { SETTLED_SHARE, buildCase, caseLogits, givenTokens, isProvable, likeliest, provedAt } from "./guarantee.js";
import { recordSteps } from "./prediction.js";
import { advanceRun, startRun } from "./training.js";

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./training.js").Settings} Settings */
/** @typedef {import("./guarantee.js").Solver} Solver */

/**
 * @typedef {object} Plane
 * @property {Matrix} E1
 * @property {Matrix} E2
 * @property {number[]} a
 * @property {number[]} b  cell j·|a| + k is W(0) = a[k] E₁ + b[j] E₂
 * @property {number} budget  steps per cell at most
 */

/**
 * @typedef {object} StartMap
 * @property {Int32Array} end  per cell, index into selections; −1 where not yet computed
 * @property {Uint8Array} level  per cell: 2 guaranteed from this start, 1 settled, 0 open
 * @property {Selection[]} selections  that were found
 * @property {number} done  cells computed
 * @property {Data} data
 * @property {Settings} settings
 * @property {Plane} plane
 * @property {import("./guarantee.js").Case} own
 */

/**
 * Begin a map. With "KQ" each start is factored, K and Q of the same size.
 * @param {Data} data @param {Settings} settings @param {Plane} plane
 * @param {Solver} solve  solveNorm
 * @returns {StartMap}
 */
export function newStartMap(data, settings, plane, solve) {
  const cells = plane.a.length * plane.b.length;
  return {
    end: new Int32Array(cells).fill(-1), level: new Uint8Array(cells), selections: [], done: 0,
    data, settings, plane, own: buildCase(data, settings, solve),
  };
}

/** Compute more cells, spread over the plane; returns whether any are left.
 * @param {StartMap} map @param {number} cells
 */
export function growStartMap(map, cells) {
  const all = map.end.length;
  const stride = coprimeStride(all);
  for (const last = Math.min(map.done + cells, all); map.done < last; map.done++) {
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
  const { E1, E2, a, b } = map.plane;
  const [x, y] = [a[cell % a.length], b[Math.floor(cell / a.length)]];
  const start = E1.map((value, j) => x * value + y * E2[j]);
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
function endFrom({ data, settings, plane, own }, start) {
  const run = startRun(data, { ...settings, start });
  const { lr, normalize } = run.settings;
  const provable = isProvable(settings);
  let now = { selection: own.best, share: 0 };
  for (const moment of recordSteps(plane.budget)) {
    advanceRun(run, moment - run.step);
    const logits = caseLogits(own, run.W);
    now = likeliest(own, logits);
    const theorem = provable ? provedAt(own, logits, run.W, lr, !normalize).theorem : "";
    const selection = givenTokens(own, theorem === "A" ? own.best : now.selection);
    if (theorem) return { selection, level: 2 };
    if (!provable && now.share >= SETTLED_SHARE) return { selection, level: 1 };
  }
  return { selection: givenTokens(own, now.selection), level: now.share >= SETTLED_SHARE ? 1 : 0 };
}
