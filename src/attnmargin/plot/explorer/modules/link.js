// The state of the page as short text for the address, and back: base64url of JSON, behind a version.

import { SENTENCES_DEFAULT, SENTENCES_MOST, SENTENCES_WORDS, sentencesData } from "./sentences.js";
import { GRAPH_DEFAULT } from "./nextgraph.js";
import { tokenSplit } from "./tokengraph.js";

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./state.js").Settings} Settings */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./sentences.js").Sentence} Sentence */

const LINK_VERSION = "1";
const LINK_SCENES = ["plane", "sentences", "graph"];
const LINK_METHODS = /** @type {const} */ (["gd", "mirror", "steepest"]);
const LINK_NORMS = /** @type {const} */ (["fro", "max", "spectral"]);
const LINK_PARAMETERS = /** @type {const} */ (["W", "KQ"]);
const LINK_LOSSES = ["logistic", "exponential", "linear", "squared", "log"];
/** Most sequences, tokens of one, width, letters of a sentence or word, and of the graph's text. */
export const LINK_MOST = { sequences: 8, tokens: 24, width: 32, text: 200, graph: 4000 };

/** @param {string} text */
function linkPack(text) {
  let letters = "";
  for (const byte of new TextEncoder().encode(text)) letters += String.fromCharCode(byte);
  return btoa(letters).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** @param {string} text */
function linkUnpack(text) {
  const letters = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

/** @param {unknown} a @param {unknown} b */
function linkSame(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Numbers of settings, in a fixed order. @param {Settings} s */
function linkSettings(s) {
  return [s.method, s.parameter, s.norm, s.p, s.lr, Number(s.normalize), s.loss];
}

/** What a link holds of a state: what follows from the sentences, or is there at first, is left out.
 * @param {State} state */
function linkRecord(state) {
  const { data, words, sentences } = state, own = sentencesData(sentences);
  const follows = linkSame([data, words], [own.data, own.words]);
  return {
    s: state.scene,
    d: follows ? undefined : [data.X, data.z, data.y, data.v],
    w: follows || !words ? undefined : words,
    t: linkSame(sentences, SENTENCES_DEFAULT) ? undefined : sentences.map((x) => [x.text, x.query, x.label]),
    g: state.graph === GRAPH_DEFAULT ? undefined : state.graph,
    o: linkSettings(state.settings),
    o2: state.second ? linkSettings(state.second) : undefined,
    b: state.start.every((x) => x === 0) ? undefined : state.start,
    f: state.focus || undefined,
  };
}

/** The state as text that an address may hold; empty if it is too large for a link.
 * @param {State} state @returns {string} */
export function encodeState(state) {
  const text = `${LINK_VERSION}.${linkPack(JSON.stringify(linkRecord(state)))}`;
  return decodeState(text) ? text : "";
}

/** @param {unknown} fine @returns {asserts fine} */
function linkNeed(fine) {
  if (!fine) throw new Error("damaged link");
}

/** @param {unknown} x @returns {number[]} */
function linkNumbers(x, /** @type {number} */ least, /** @type {number} */ most) {
  linkNeed(Array.isArray(x) && x.length >= least && x.length <= most);
  linkNeed(x.every((value) => Number.isFinite(value) && Math.abs(value) < 1e100));
  return x;
}

/** @param {unknown} x @param {number} most @returns {string} */
function linkText(x, most) {
  linkNeed(typeof x === "string" && x.length <= most);
  return x;
}

/** @template {string} T @param {unknown} x @param {readonly T[]} known @returns {T} */
function linkOne(x, known) {
  linkNeed(known.includes(/** @type {T} */ (x)));
  return /** @type {T} */ (x);
}

/** @template T @param {unknown} x @param {number} most @param {(item: unknown) => T} read @returns {T[]} */
function linkList(x, most, read) {
  linkNeed(Array.isArray(x) && x.length >= 1 && x.length <= most);
  return x.map(read);
}

/** @param {unknown} x @returns {Data} */
function linkData(x) {
  linkNeed(Array.isArray(x) && x.length === 4);
  const { sequences, tokens, width } = LINK_MOST, v = linkNumbers(x[3], 1, width), d = v.length;
  const X = linkList(x[0], sequences, (rows) => linkList(rows, tokens, (row) => linkNumbers(row, d, d)));
  const z = linkList(x[1], X.length, (row) => linkNumbers(row, d, d)), y = linkNumbers(x[2], X.length, X.length);
  linkNeed(z.length === X.length && y.every((label) => Math.abs(label) === 1));
  return { X, z, y, v };
}

/** @param {unknown} x @param {Data} data @returns {string[][]} */
function linkWords(x, data) {
  const words = linkList(x, data.X.length, (row) => linkList(row, LINK_MOST.tokens, (word) => linkText(word, LINK_MOST.text)));
  linkNeed(words.length === data.X.length && words.every((row, i) => row.length === data.X[i].length));
  return words;
}

/** @param {unknown} x @returns {Sentence} */
function linkSentence(x) {
  linkNeed(Array.isArray(x) && x.length === 3);
  const text = linkText(x[0], LINK_MOST.text), [query, label] = linkNumbers(x.slice(1), 2, 2);
  const count = tokenSplit(text).length;
  linkNeed(count && count <= SENTENCES_WORDS && Number.isInteger(query) && query >= 0 && query < count && Math.abs(label) === 1);
  return { text, query, label };
}

/** @param {unknown} x @returns {Settings} */
function linkReadSettings(x) {
  linkNeed(Array.isArray(x) && x.length === 7);
  const [p, lr, normalize] = linkNumbers(x.slice(3, 6), 3, 3);
  linkNeed(p > 1 && p <= 100 && lr > 0 && (normalize === 0 || normalize === 1));
  return {
    method: linkOne(x[0], LINK_METHODS), parameter: linkOne(x[1], LINK_PARAMETERS), norm: linkOne(x[2], LINK_NORMS),
    p, lr, normalize: normalize === 1, loss: linkOne(x[6], LINK_LOSSES),
  };
}

/** @param {any} record @returns {State} */
function linkState(record) {
  linkNeed(record && typeof record === "object");
  const sentences = record.t === undefined ? SENTENCES_DEFAULT.map((s) => ({ ...s }))
    : record.t.length === 0 ? [] : linkList(record.t, SENTENCES_MOST, linkSentence);
  const follows = record.d === undefined;
  const own = follows ? sentencesData(sentences) : { data: linkData(record.d), words: null };
  const data = own.data, d = data.v.length;
  const { f = 0, b = new Array(d * d).fill(0) } = record;
  linkNeed(data.X.length && Number.isInteger(f) && f >= 0 && f < data.X.length);
  return {
    scene: linkOne(record.s, LINK_SCENES),
    data,
    words: record.w === undefined ? own.words : linkWords(record.w, data),
    settings: linkReadSettings(record.o),
    second: record.o2 === undefined ? null : linkReadSettings(record.o2),
    start: linkNumbers(b, d * d, d * d),
    focus: f,
    sentences,
    graph: record.g === undefined ? GRAPH_DEFAULT : linkText(record.g, LINK_MOST.graph),
  };
}

/** The state of a link, or null if it is damaged. @param {string} text @returns {State | null} */
export function decodeState(text) {
  try {
    const [version, packed, ...rest] = text.split(".");
    if (version !== LINK_VERSION || rest.length || text.length > 200_000) return null;
    return linkState(JSON.parse(linkUnpack(packed)));
  } catch {
    return null;
  }
}
