// All locally optimal selections of an instance (paper A, Definition 2).

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */

/**
 * @typedef {object} LocalSelection
 * @property {Selection} selection
 * @property {number} margin
 * @property {Matrix} W  its Frobenius solution
 */

/**
 * Find all locally optimal selections, the optimal tokens first, then by margin.
 *
 * Equal tokens of a sequence count once, as the first of them.
 * @param {Data} data
 * @param {number} [work]  how many steps of the solver to take at most; 4 × 6 tokens need about 1,000
 * @returns {{selections: LocalSelection[], complete: boolean}}
 */
export function localSelections(data, work = 100_000) {
  void data;
  void work;
  throw new Error("to come");
}
