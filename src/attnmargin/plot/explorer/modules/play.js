// Runs and their history: steps are taken as far as they are asked for, and all of them stay.
/** @import { State } from "./state.js" */
/** @import { Run } from "./training.js" */
import { runSettings } from "./look.js";
import { attentionAt } from "./softmax.js";
import { advanceRun, measure, runW, startRun } from "./training.js";

/** @typedef {{step: number, W: Float64Array, attention: number[][]}} Frame */
/**
 * A run with what was recorded of it; `steps` grows.
 * @typedef {{run: Run, steps: number[], Ws: Float64Array[], excess: number[], share: number[]}} History
 */

export const LAST_STEP = 1e6;
// Every step is recorded up to here, then one in fifty of those before.
const DENSE = 200, GROWTH = 1.02;

/** @param {State} state @returns {History[]} */
export function startHistories(state) {
  const kinds = state.second ? [state.settings, state.second] : [state.settings];
  return kinds.map((own) => {
    const history = { run: startRun(state.data, runSettings(state, own)), steps: [], Ws: [], excess: [], share: [] };
    record(history);
    return history;
  });
}

/** @param {History} history */
function record(history) {
  const own = measure(history.run);
  history.steps.push(history.run.step);
  history.Ws.push(Float64Array.from(runW(history.run)));
  history.excess.push(own.logExcess);
  history.share.push(own.probability);
}

/** The step of the next record. @param {number} step */
export function nextRecord(step) {
  return Math.min(step < DENSE ? step + 1 : Math.ceil(step * GROWTH), LAST_STEP);
}

/**
 * Take steps up to a target, at most for some milliseconds; returns the step that was reached.
 * @param {History} history
 * @param {number} target
 * @param {number} milliseconds
 */
export function runTo(history, target, milliseconds) {
  const end = performance.now() + milliseconds;
  const { run } = history;
  while (run.step < target && performance.now() < end) {
    const next = nextRecord(history.steps[history.steps.length - 1]);
    advanceRun(run, Math.min(next, target, run.step + 2000) - run.step);
    if (run.step === next) record(history);
  }
  return run.step;
}

/**
 * The frame at a step: that of the last record up to it, or of the run where that is nearer.
 * @param {History} history
 * @param {number} step
 * @returns {Frame}
 */
export function frameAt(history, step) {
  const { run } = history;
  const at = step >= run.step ? -1 : placeOfStep(history.steps, step);
  const W = at < 0 ? Float64Array.from(runW(run)) : history.Ws[at];
  return { step: at < 0 ? run.step : history.steps[at], W, attention: attentionAt(run.tokens, W) };
}

/**
 * The last place of an ascending list with a value up to x.
 * @param {number[]} steps
 * @param {number} x
 */
export function placeOfStep(steps, x) {
  let [low, high] = [0, steps.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= x) low = middle;
    else high = middle;
  }
  return low;
}
