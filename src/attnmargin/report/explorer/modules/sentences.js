// Sentences as attention data, and the scene that shows them.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {{text: string, query: number, label: number}} Sentence  query: index of a word; label: ±1 */
/** @typedef {{selection?: (number | null)[] | null, best?: number[], support?: boolean[][]}} SentenceLook */

/** The six reviews of the demo. @type {Sentence[]} */
export const SENTENCES_DEFAULT = [];

/** Build data: words are tokens, the chosen word is the query, the head reads the first number.
 * @param {Sentence[]} sentences @returns {{data: Data, words: string[][]}} */
export function sentencesData(sentences) {
  return { data: { X: [], z: [], y: sentences.map((s) => s.label), v: [] }, words: [] };
}

/** Show sentences, words shaded by attention; `change({sentences})` is called after every edit.
 * @param {(part: {sentences: Sentence[]}) => void} change
 * @returns {{element: HTMLElement, update: (state: {sentences: Sentence[]}, look: SentenceLook | null, frame: {attention: ArrayLike<number>[]} | null) => void}} */
export function sentencesScene(change) {
  return { element: document.createElement("section"), update: () => change({ sentences: [] }) };
}
