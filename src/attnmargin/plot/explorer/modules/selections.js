// All locally optimal selections of an instance (paper A, Definition 2).
//
// Selections are built sequence by sequence. The solver of a beginning continues from that of the
// beginning without its last sequence; an infeasible beginning excludes all that continue it.

import { INFEASIBLE, SOLVED, advance, copyBasis, emptyBasis, isTight } from "./activeset.js";
import { vectorRows } from "./frobenius.js";
import { optimalTokens, scoreRounding, scores } from "./rows.js";

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Matrix} Matrix */
/** @typedef {import("./types.js").Selection} Selection */
/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./activeset.js").System} System */
/** @typedef {import("./activeset.js").Basis} Basis */

/**
 * @typedef {object} LocalSelection
 * @property {Selection} selection
 * @property {number} margin
 * @property {Matrix} W  its Frobenius solution
 */

/**
 * @typedef {object} Choice  a token that a sequence may select
 * @property {number} token
 * @property {number[]} rows  of the system
 */

/**
 * @typedef {object} Walk
 * @property {System} P  the rows of all pairs of tokens
 * @property {Uint8Array} pulls  whether the token that must lose in a row has no lower score
 * @property {Choice[][]} choices  of each sequence
 * @property {Basis[]} bases  of beginnings, by their number of sequences
 * @property {Int32Array} list  the rows of the present beginning
 * @property {Selection} selection
 * @property {LocalSelection[]} found
 * @property {number} work
 * @property {boolean} complete
 */

/** Tokens that do not equal an earlier one. @param {number[][]} tokens */
function different(tokens) {
  const first = new Map(tokens.map((x, t) => /** @type {const} */ ([x.join(), t])).reverse());
  return [...first.values()].sort((a, b) => a - b);
}

/** @param {Data} data @param {number} work @returns {Walk} */
function prepare(data, work) {
  const [gamma, rounding] = [scores(data), scoreRounding(data)];
  /** @type {Rows} */
  const rows = { left: [], query: [], sequence: [], token: [], other: [] };
  /** @type {number[]} */
  const pulls = [];
  const choices = data.X.map((X, i) => {
    const tokens = different(X);
    return tokens.map((token) => {
      const others = tokens.filter((t) => t !== token);
      const own = others.map((t) => {
        rows.left.push(Float64Array.from(X[token], (value, c) => value - X[t][c]));
        pulls.push(gamma[i][t] >= gamma[i][token] - rounding[i] ? 1 : 0);
        return rows.query.push(i) - 1;
      });
      return { token, rows: own };
    });
  });
  const P = vectorRows(rows, data.z);
  const most = choices.reduce((sum, own) => sum + own.length - 1, 0);
  const bases = [...data.X, null].map(() => emptyBasis(P.D, most));
  const list = new Int32Array(most);
  const selection = data.X.map(() => 0);
  return { P, pulls: Uint8Array.from(pulls), choices, bases, list, selection, found: [], work, complete: true };
}

/** Keep the tokens that some weights can select by themselves. @param {Walk} walk */
function prune({ P, choices, bases }) {
  return choices.map((own) => own.filter(({ rows }) => {
    bases[0].k = 0;
    bases[0].w.fill(0);
    return advance(P, bases[0], rows, rows.length) !== INFEASIBLE;
  }));
}

/** Visit all continuations of a beginning. @param {Walk} walk @param {number} depth @param {number} size */
function visit(walk, depth, size) {
  const { P, choices, bases, list, selection } = walk;
  if (depth === choices.length) {
    keep(walk, bases[depth], size);
    return;
  }
  for (const { token, rows } of choices[depth]) {
    if (P.steps > walk.work) walk.complete = false;
    if (!walk.complete) return;
    selection[depth] = token;
    for (let k = 0; k < rows.length; k++) list[size + k] = rows[k];
    copyBasis(bases[depth + 1], bases[depth]);
    const outcome = advance(P, bases[depth + 1], list, size + rows.length);
    if (outcome === SOLVED) visit(walk, depth + 1, size + rows.length);
    else if (outcome !== INFEASIBLE) walk.complete = false;
  }
}

/** Keep a selection unless a support token of no lower score pulls away. @param {Walk} walk @param {Basis} S */
function keep({ P, pulls, list, selection, found }, S, /** @type {number} */ size) {
  const norm = Math.hypot(...S.w);
  for (let k = 0; k < size; k++) {
    if (pulls[list[k]] && isTight(P, list[k], S.w, norm)) return;
  }
  found.push({ selection: [...selection], margin: 1 / norm, W: S.w.slice() });
}

/**
 * Find all locally optimal selections, the optimal tokens first, then by margin.
 *
 * Equal tokens of a sequence count once, as the first of them.
 * @param {Data} data
 * @param {number} [work]  steps of the solver at most, of a few µs each; 4 × 6 tokens in the
 *   plane need about 800
 * @returns {{selections: LocalSelection[], complete: boolean}}
 */
export function localSelections(data, work = 100_000) {
  const walk = prepare(data, work);
  walk.choices = prune(walk);
  walk.bases[0].k = 0;
  walk.bases[0].w.fill(0);
  visit(walk, 0, 0);
  const best = optimalTokens(data).join();
  const rank = (/** @type {LocalSelection} */ x) => (x.selection.join() === best ? Infinity : x.margin);
  const selections = walk.found.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) - rank(a)));
  return { selections, complete: walk.complete };
}
