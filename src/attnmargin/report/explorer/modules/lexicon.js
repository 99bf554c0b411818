// Words with small vectors of our own.

/** Length of the vectors. */
export const LEX_WIDTH = 8;

/** @returns {string[]} the words that have a vector */
export function lexWords() {
  return [];
}

/** Whether a word, however it is written, has a vector of its own. @param {string} word */
export function lexKnown(word) {
  return word === "";
}

/** The vector of a word; of an unknown one, neutral and drawn by hash.
 * @param {string} word @returns {number[]} */
export function lexVector(word) {
  return [word.length];
}
