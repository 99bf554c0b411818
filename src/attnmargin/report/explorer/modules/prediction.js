// What a run ends in, and how sure that is: the verdicts of `am.predict`.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./training.js").Settings} Settings */
/** @typedef {import("./guarantee.js").Solver} Solver */

/** @typedef {"guaranteed" | "guaranteed from this start" | "conjectured" | "undecided"} Verdict */

/**
 * @typedef {object} Ending
 * @property {Selection} selection
 * @property {Verdict} verdict
 * @property {number} since  the step from which it is proved; −1 where it is not
 * @property {number} settled  the step since which the selection is the same
 * @property {number} steps  steps taken
 * @property {import("./types.js").Matrix} W  there
 */

/**
 * Follow a run until its end is proved, at most for `budget` steps (20,000 in `am.predict`).
 * @param {Data} data @param {Settings} settings @param {number} budget @param {Solver} solve
 * @returns {Ending}
 */
export function predictRun(data, settings, budget, solve) {
  return { selection: [], verdict: "undecided", since: -1, settled: 0, steps: 0, W: new Float64Array() };
}
