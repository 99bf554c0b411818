// The state of the page as short text for the address, and back: base64url of JSON, behind a version.

import { SENTENCES_DEFAULT, SENTENCES_MOST, SENTENCES_WORDS, sentencesData } from "./sentences.js";
import { GRAPH_DEFAULT } from "./nextgraph.js";
import { tokenSplit } from "./tokengraph.js";

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./state.js").Settings} Settings */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./sentences.js").Sentence} Sentence */

const VERSION = "1";
const SCENES = ["plane", "sentences", "graph"];
const METHODS = /** @type {const} */ (["gd", "mirror", "steepest"]);
const NORMS = /** @type {const} */ (["fro", "max", "spectral"]);
const PARAMETERS = /** @type {const} */ (["W", "KQ"]);
const LOSSES = ["logistic", "exponential", "linear", "squared", "log"];
/** Most sequences, tokens of one, width, letters of a sentence or word, and of the graph's text. */
const MOST = { sequences: 8, tokens: 24, width: 32, text: 200, graph: 4000 };

/** @param {string} text */
function pack(text) {
  let letters = "";
  for (const byte of new TextEncoder().encode(text)) letters += String.fromCharCode(byte);
  return btoa(letters).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** @param {string} text */
function unpack(text) {
  const letters = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

/** @param {unknown} a @param {unknown} b */
function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Numbers of settings, in a fixed order. @param {Settings} s */
function settingsList(s) {
  return [s.method, s.parameter, s.norm, s.p, s.lr, Number(s.normalize), s.loss];
}

/** What a link holds of a state: what follows from the sentences, or is there at first, is left out.
 * @param {State} state */
function recordOf(state) {
  const { data, words, sentences } = state, own = sentencesData(sentences);
  const follows = same([data, words], [own.data, own.words]);
  return {
    s: state.scene,
    d: follows ? undefined : [data.X, data.z, data.y, data.v],
    w: follows || !words ? undefined : words,
    t: same(sentences, SENTENCES_DEFAULT) ? undefined : sentences.map((x) => [x.text, x.query, x.label]),
    g: state.graph === GRAPH_DEFAULT ? undefined : state.graph,
    o: settingsList(state.settings),
    o2: state.second ? settingsList(state.second) : undefined,
    b: state.start.every((x) => x === 0) ? undefined : state.start,
    f: state.focus || undefined,
  };
}

/** The state as text that an address may hold; empty if it is too large for a link.
 * @param {State} state @returns {string} */
export function encodeState(state) {
  const text = `${VERSION}.${pack(JSON.stringify(recordOf(state)))}`;
  return decodeState(text) ? text : "";
}

/** @param {unknown} fine @returns {asserts fine} */
function need(fine) {
  if (!fine) throw new Error("damaged link");
}

/** @param {unknown} x @returns {number[]} */
function numbers(x, /** @type {number} */ least, /** @type {number} */ most) {
  need(Array.isArray(x) && x.length >= least && x.length <= most);
  need(x.every((value) => Number.isFinite(value) && Math.abs(value) < 1e100));
  return x;
}

/** @param {unknown} x @param {number} most @returns {string} */
function textOf(x, most) {
  need(typeof x === "string" && x.length <= most);
  return x;
}

/** @template {string} T @param {unknown} x @param {readonly T[]} known @returns {T} */
function oneOf(x, known) {
  need(known.includes(/** @type {T} */ (x)));
  return /** @type {T} */ (x);
}

/** @template T @param {unknown} x @param {number} most @param {(item: unknown) => T} read @returns {T[]} */
function listOf(x, most, read) {
  need(Array.isArray(x) && x.length >= 1 && x.length <= most);
  return x.map(read);
}

/** @param {unknown} x @returns {Data} */
function dataOf(x) {
  need(Array.isArray(x) && x.length === 4);
  const { sequences, tokens, width } = MOST, v = numbers(x[3], 1, width), d = v.length;
  const X = listOf(x[0], sequences, (rows) => listOf(rows, tokens, (row) => numbers(row, d, d)));
  const z = listOf(x[1], X.length, (row) => numbers(row, d, d)), y = numbers(x[2], X.length, X.length);
  need(z.length === X.length && y.every((label) => Math.abs(label) === 1));
  return { X, z, y, v };
}

/** @param {unknown} x @param {Data} data @returns {string[][]} */
function wordsOf(x, data) {
  const words = listOf(x, data.X.length, (row) => listOf(row, MOST.tokens, (word) => textOf(word, MOST.text)));
  need(words.length === data.X.length && words.every((row, i) => row.length === data.X[i].length));
  return words;
}

/** @param {unknown} x @returns {Sentence} */
function sentenceOf(x) {
  need(Array.isArray(x) && x.length === 3);
  const text = textOf(x[0], MOST.text), [query, label] = numbers(x.slice(1), 2, 2);
  const count = tokenSplit(text).length;
  need(count && count <= SENTENCES_WORDS && Number.isInteger(query) && query >= 0 && query < count && Math.abs(label) === 1);
  return { text, query, label };
}

/** @param {unknown} x @returns {Settings} */
function settingsOf(x) {
  need(Array.isArray(x) && x.length === 7);
  const [p, lr, normalize] = numbers(x.slice(3, 6), 3, 3);
  need(p >= 1.1 && p <= 10 && lr > 0 && (normalize === 0 || normalize === 1));
  const method = oneOf(x[0], METHODS), parameter = oneOf(x[1], PARAMETERS), norm = oneOf(x[2], NORMS);
  need((method === "gd" || parameter === "W") && (method !== "steepest" || norm !== "fro"));
  return {
    method, parameter, norm, p, lr, normalize: normalize === 1, loss: oneOf(x[6], LOSSES),
  };
}

/** @param {any} record @returns {State} */
function stateOf(record) {
  need(record && typeof record === "object");
  const sentences = record.t === undefined ? SENTENCES_DEFAULT.map((s) => ({ ...s }))
    : record.t.length === 0 ? [] : listOf(record.t, SENTENCES_MOST, sentenceOf);
  const follows = record.d === undefined;
  const own = follows ? sentencesData(sentences) : { data: dataOf(record.d), words: null };
  const data = own.data, d = data.v.length;
  const { f = 0, b = new Array(d * d).fill(0) } = record;
  need(data.X.length && Number.isInteger(f) && f >= 0 && f < data.X.length);
  return {
    scene: oneOf(record.s, SCENES),
    data,
    words: record.w === undefined ? own.words : wordsOf(record.w, data),
    settings: settingsOf(record.o),
    second: record.o2 === undefined ? null : settingsOf(record.o2),
    start: numbers(b, d * d, d * d),
    focus: f,
    sentences,
    graph: record.g === undefined ? GRAPH_DEFAULT : textOf(record.g, MOST.graph),
  };
}

/** The state of a link, or null if it is damaged. @param {string} text @returns {State | null} */
export function decodeState(text) {
  try {
    const [version, packed, ...rest] = text.split(".");
    if (version !== VERSION || rest.length || text.length > 200_000) return null;
    return stateOf(JSON.parse(unpack(packed)));
  } catch {
    return null;
  }
}
