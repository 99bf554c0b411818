// Between the data of the page and the arrays that am.AttentionData.save and load use.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./npz.js").NpzArray} NpzArray */
/** @typedef {Record<string, NpzArray>} Arrays */

/** Most tokens in all, largest width, and most of tokens × width²: more would not answer at once. */
const TOKENS = 400, WIDTH = 128, WORK = 200_000;

/** Pad unequal sequences, and mask the padding.
 * @param {Data} data @param {string[][] | null} words @returns {Arrays} */
export function dataToArrays(data, words) {
  const n = data.X.length, T = Math.max(...data.X.map((rows) => rows.length)), d = data.v.length;
  const zero = new Array(d).fill(0), places = Array.from({ length: T }, (_, t) => t);
  const X = data.X.flatMap((rows) => places.flatMap((t) => rows[t] ?? zero));
  /** @type {Arrays} */
  const arrays = {
    X: { kind: "float", shape: [n, T, d], values: X },
    z: { kind: "float", shape: [n, d], values: data.z.flat() },
    y: { kind: "float", shape: [n], values: data.y },
    v: { kind: "float", shape: [d], values: data.v },
  };
  if (data.X.some((rows) => rows.length < T)) {
    const mask = data.X.flatMap((rows) => places.map((t) => Number(t < rows.length)));
    arrays.mask = { kind: "bool", shape: [n, T], values: mask };
  }
  if (words) {
    const names = data.X.flatMap((_, i) => places.map((t) => words[i]?.[t] ?? ""));
    arrays.words = { kind: "text", shape: [n, T], values: names };
  }
  return arrays;
}

/** @param {number[]} a @param {number[]} b */
function equal(a, b) {
  return a.length === b.length && a.every((x, k) => x === b[k]);
}

/** @param {number[]} shape */
function shapeWords(shape) {
  return `shape (${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
}

/** Numbers of a shape, or null if absent; those that do not count may be anything, even NaN.
 * @param {Arrays} arrays @param {string} name @param {number[]} shape
 * @param {(at: number) => boolean} [counts] @returns {number[] | null} */
function numbers(arrays, name, shape, counts = () => true) {
  const array = Object.hasOwn(arrays, name) ? arrays[name] : null;
  if (!array) return null;
  if (array.kind === "text") throw new Error(`${name} holds text; it needs numbers.`);
  if (!equal(array.shape, shape)) {
    throw new Error(`${name} has the ${shapeWords(array.shape)}; this page needs ${shapeWords(shape)}.`);
  }
  const values = Array.from(array.values);
  if (!values.every((x, at) => Math.abs(x) <= 1e100 || !counts(at))) throw new Error(`${name} holds a number that is not finite, or above 1e100.`);
  return values;
}

/** @param {Arrays} arrays */
function sizesOf(arrays) {
  const X = Object.hasOwn(arrays, "X") ? arrays.X : null, z = Object.hasOwn(arrays, "z") ? arrays.z : null;
  if (!X || !z) throw new Error(`The file has no array named ${X ? "z" : "X"}.`);
  if (X.shape.length > 3) throw new Error(`X has the ${shapeWords(X.shape)}: this page shows one instance, not a batch.`);
  if (X.shape.length < 3 || X.shape.includes(0)) throw new Error(`X has the ${shapeWords(X.shape)}; it needs (n, T, d).`);
  if (z.shape.length > 2) throw new Error(`z has the ${shapeWords(z.shape)}: this page shows one query per sequence.`);
  const [n, T, d] = X.shape;
  const most = Math.min(TOKENS, Math.floor(WORK / Math.min(d, WIDTH) ** 2));
  if (n * T > most || d > WIDTH) {
    throw new Error(`X has the ${shapeWords(X.shape)}; this page shows at most ${most} tokens in all, of width at most ${WIDTH}.`);
  }
  return { n, T, d };
}

/** @param {Arrays} arrays @param {number} n @param {number} d */
function labelsOf(arrays, n, d) {
  const y = numbers(arrays, "y", [n]) ?? new Array(n).fill(1);
  if (y.some((label) => Math.abs(label) !== 1)) throw new Error("y holds labels other than −1 and +1.");
  const v = numbers(arrays, "v", [d]) ?? Array.from({ length: d }, (_, k) => Number(k === 0));
  return { y, v };
}

/** Read data: hidden tokens go, missing labels are +1, a missing head is the first coordinate. An
 * Error says in one sentence what the page cannot show.
 * @param {Arrays} arrays @returns {{data: Data, words: string[][] | null}} */
export function dataFromArrays(arrays) {
  const { n, T, d } = sizesOf(arrays);
  const hidden = Object.hasOwn(arrays, "mask") && arrays.mask.shape.length > 2;
  if (hidden) throw new Error("mask differs from query to query: this page shows one query per sequence.");
  const mask = numbers(arrays, "mask", [n, T]) ?? new Array(n * T).fill(1);
  const seen = Array.from({ length: n }, (_, i) =>
    Array.from({ length: T }, (_, t) => i * T + t).filter((at) => mask[at]));
  const empty = seen.findIndex((row) => row.length === 0);
  if (empty >= 0) throw new Error(`Sequence ${empty + 1} has no visible token.`);
  const tokens = /** @type {number[]} */ (numbers(arrays, "X", [n, T, d], (at) => mask[Math.floor(at / d)] !== 0));
  const z = /** @type {number[]} */ (numbers(arrays, "z", [n, d]));
  const X = seen.map((row) => row.map((at) => tokens.slice(at * d, at * d + d)));
  const queries = X.map((_, i) => z.slice(i * d, i * d + d));
  return { data: { X, z: queries, ...labelsOf(arrays, n, d) }, words: wordsOf(arrays, seen, [n, T]) };
}

/** @param {Arrays} arrays @param {number[][]} seen @param {number[]} shape */
function wordsOf(arrays, seen, shape) {
  const array = Object.hasOwn(arrays, "words") ? arrays.words : null;
  if (!array) return null;
  if (array.kind !== "text" || !equal(array.shape, shape)) {
    throw new Error(`words needs one name per token, ${shapeWords(shape)}.`);
  }
  const names = array.values;
  return seen.map((row) => row.map((at) => names[at]));
}
