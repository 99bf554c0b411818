// The state of the page as short text for the address, and back.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./sentences.js").Sentence} Sentence */
/** @typedef {{parameter: "W" | "KQ", method: string, p: number, lr: number, normalize: boolean, loss: string, steps?: number}} Settings  as in am.train: method gd, mirror, sign or spectral */
/** @typedef {number[][] | {K: number[][], Q: number[][]} | null} Start  W, or K and Q, or the default */
/**
 * @typedef {object} LinkState
 * @property {string} scene  "plane", "sentences" or "graph"
 * @property {Data} data
 * @property {string[][] | null} words
 * @property {Sentence[]} sentences
 * @property {string} graph
 * @property {Settings} settings
 * @property {Settings | null} second
 * @property {Start} start
 */

/** What differs from the defaults, as text that an address may hold. @param {LinkState} state @returns {string} */
export function encodeState(state) {
  return state.scene;
}

/** The state of a link, or null if it is damaged. @param {string} text @returns {LinkState | null} */
export function decodeState(text) {
  return text ? null : null;
}
