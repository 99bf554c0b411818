// The state of the explorer: plain data, and the changes that a person can make.
/** @import { Data } from "./types.js" */

/**
 * How a run trains: `norm` counts for "steepest", `p` for "mirror".
 * @typedef {{method: "gd" | "mirror" | "steepest", parameter: "W" | "KQ", norm: "fro" | "max" | "spectral",
 *   p: number, lr: number, normalize: boolean, loss: string}} Settings
 */
/** @typedef {{text: string, query: number, label: number}} Sentence */
/**
 * `start` is W(0), row by row; `focus` the sequence whose plane is drawn; `second` a run to compare.
 * @typedef {{scene: string, data: Data, words: string[][] | null, settings: Settings,
 *   second: Settings | null, start: number[], focus: number, sentences: Sentence[], graph: string}} State
 */

// The largest programs of the spectral, max and nuclear norm that take no more than seconds.
const WIDEST = 10, LONGEST = 200;

/** @returns {Settings} */
export function defaultSettings() {
  return {
    method: "gd", parameter: "W", norm: "fro", p: 3, lr: 0.1, normalize: true, loss: "logistic",
  };
}

/** @returns {State} */
export function defaultState() {
  return {
    scene: "plane",
    data: {
      X: [
        [[0.9, 0.55], [0.35, -0.75], [-0.6, 0.5], [-0.75, -0.35]],
        [[0.15, 0.95], [-0.9, 0.25], [0.7, -0.45], [-0.2, -0.8]],
      ],
      z: [[0.8, 0.3], [-0.35, 0.75]],
      y: [1, -1],
      v: [0.75, 0.25],
    },
    words: null,
    settings: defaultSettings(),
    second: null,
    start: [0, 0, 0, 0],
    focus: 0,
    sentences: [],
    graph: "",
  };
}

/**
 * Settings whose direction these data allow to compute at once, or gradient descent.
 * @param {Data} data @param {Settings} own @returns {Settings}
 */
export function quickSettings({ X, v }, own) {
  const wide = own.method === "steepest" && v.length > WIDEST;
  const long = own.parameter === "KQ" && X.flat().length - X.length > LONGEST;
  return wide || long ? { ...own, method: "gd", parameter: "W" } : own;
}

/**
 * A name for a token: its word, or letter and number.
 * @param {{data: Data, words: string[][] | null}} state
 * @param {number} i
 * @param {number} t
 */
export function tokenName(state, i, t) {
  return state.words?.[i]?.[t] || `${sequenceName(i)}${t + 1}`;
}

/** A, B, …, Z, AA, AB, … @param {number} i @returns {string} */
export function sequenceName(i) {
  return (i < 26 ? "" : sequenceName(Math.floor(i / 26) - 1)) + String.fromCharCode(65 + (i % 26));
}

/**
 * Change a copy of the data.
 * @param {Data} data
 * @param {(copy: Data) => void} change
 * @returns {Data}
 */
export function changedData(data, change) {
  const copy = structuredClone(data);
  change(copy);
  return copy;
}

/**
 * Move every chosen handle: a token, a query or the head, by a vector of length d.
 * @param {Data} data
 * @param {{kind: string, i: number, t: number}} handle
 * @param {number[]} by
 * @returns {Data}
 */
export function movedData(data, handle, by) {
  return changedData(data, (copy) => {
    const vector = handle.kind === "token" ? copy.X[handle.i][handle.t]
      : handle.kind === "query" ? copy.z[handle.i] : copy.v;
    by.forEach((step, k) => { vector[k] = rounded(vector[k] + step); });
  });
}

/**
 * Keep numbers short in links: four decimals are finer than a pixel.
 * @param {number} x
 */
export function rounded(x) {
  return Math.round(x * 1e4) / 1e4;
}
