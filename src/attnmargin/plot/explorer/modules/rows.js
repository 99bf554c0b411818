// Scores of tokens, the tokens that they select, and the margin rows of a selection.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Selection} Selection */

/**
 * @typedef {object} Rows  ⟨left_m z_qᵀ, W⟩ ≥ 1 with q = query_m
 * @property {Float64Array[]} left  the selected token minus the other
 * @property {number[]} query  index of the query
 * @property {number[]} sequence  the sequence that asks for the row
 * @property {number[]} token  the token that must win
 * @property {number[]} other  the token that must lose
 */

// Splits a number into two halves whose products are exact (Dekker).
const SPLIT = 2 ** 27 + 1;
// Units in the last place of Σ |x_c v_c| within which scores count as equal.
const EQUAL = 16;

/** What rounding takes from a product. @param {number} a @param {number} b */
function lostByProduct(a, b) {
  const [p, q] = [SPLIT * a, SPLIT * b];
  const [high, wide] = [p - (p - a), q - (q - b)];
  const [low, rest] = [a - high, b - wide];
  return low * rest - (((a * b - high * wide) - low * wide) - high * rest);
}

/** xᵀv as if in twice the precision, so that equal scores stay equal. @param {number[]} x @param {number[]} v */
export function accurateDot(x, v) {
  let [total, rest] = [0, 0];
  for (let c = 0; c < x.length; c++) {
    const product = x[c] * v[c];
    const sum = total + product;
    const part = sum - total;
    rest += total - (sum - part) + (product - part) + lostByProduct(x[c], v[c]);
    total = sum;
  }
  return total + rest;
}

/**
 * Scores γ_it = y_i vᵀx_it.
 * @param {Data} data
 * @returns {number[][]}
 */
export function scores(data) {
  return data.X.map((tokens, i) => tokens.map((x) => data.y[i] * accurateDot(x, data.v)));
}

/**
 * The distance within which the scores of each sequence count as equal.
 * @param {Data} data
 * @returns {number[]}
 */
export function scoreRounding(data) {
  const size = (/** @type {number[]} */ x) => x.reduce((s, c, k) => s + Math.abs(c * data.v[k]), 0);
  return data.X.map((tokens) => EQUAL * Number.EPSILON * Math.max(...tokens.map(size)));
}

/**
 * The token of largest score in each sequence, the first one on a tie.
 * @param {Data} data
 * @returns {Selection}
 */
export function optimalTokens(data) {
  return scores(data).map((row) => row.indexOf(Math.max(...row)));
}

/**
 * The rows of a selection, sequence after sequence: the selected token beats each other by one.
 * @param {Data} data
 * @param {Selection} selection
 * @param {boolean} [copies]  false leaves out tokens that equal the selected one: attention is theirs together
 * @returns {Rows}
 */
export function tokenRows(data, selection, copies = true) {
  /** @type {Rows} */
  const rows = { left: [], query: [], sequence: [], token: [], other: [] };
  data.X.forEach((tokens, i) => {
    const own = tokens[selection[i]];
    tokens.forEach((x, t) => {
      if (t === selection[i] || (!copies && String(x) === String(own))) return;
      rows.left.push(Float64Array.from(own, (value, c) => value - x[c]));
      rows.query.push(i);
      rows.sequence.push(i);
      rows.token.push(selection[i]);
      rows.other.push(t);
    });
  });
  return rows;
}
