// Guaranteed from here: when gradient descent on W can no longer leave a selection. Theorem A: the
// loss is below that of every other selection. Theorem B: W is in a funnel around a locally optimal
// direction. See docs/guarantees.md, whose letters these are.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./types.js").Solution} Solution */
/** @typedef {import("./training.js").Settings} Settings */

/** @typedef {(data: Data, selection: Selection) => Solution} Solver  in the norm of the method */

/**
 * @typedef {object} Guarantee
 * @property {"guaranteed from this start" | "settled" | "open"} level
 * @property {Selection} selection  what descent ends in; where open, the most likely tokens
 * @property {number} longest  longest step that is covered; 0 where nothing is proved
 * @property {number} share  least attention of a selected token, for ever, or now if not proved
 */

/**
 * What the theorems need to know of data; it keeps what it has solved, one entry per selection.
 * @typedef {object} Case
 * @property {Data} data  of equal tokens of a sequence the first
 * @property {Solver} solve
 */

/**
 * @param {Data} data @param {string} loss @param {Solver} solve
 * @returns {Case}
 */
export function buildCase(data, loss, solve) {
  return { data, solve };
}

/**
 * Tell what is proved at W.
 * @param {Case} own @param {Matrix} W @param {Settings} settings
 * @returns {Guarantee}
 */
export function guaranteeAt(own, W, settings) {
  return { level: "open", selection: [], longest: 0, share: 0 };
}
