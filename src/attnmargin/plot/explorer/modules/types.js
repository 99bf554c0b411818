// The data that all modules share. Matrices are row-major; rows of a selection are (i, t), t ≠ α_i,
// sequence after sequence, with x_iα − x_it on the left and z_i on the right.

/** @typedef {Float64Array} Matrix  d·d entries; the logits of sequence i are x_itᵀ W z_i */
/** @typedef {number[]} Selection  one token per sequence, α_i */

/**
 * @typedef {object} Data
 * @property {number[][][]} X  tokens X[i][t] of length d; sequences may differ in length
 * @property {number[][]} z  a query per sequence
 * @property {number[]} y  labels, ±1
 * @property {number[]} v  the head: token (i, t) has the score y_i v·x_it
 */

/**
 * @typedef {object} Solution  of min ‖W‖ over the rows of a selection, each at least one
 * @property {"optimal" | "infeasible" | "inaccurate"} status
 * @property {Matrix} W
 * @property {number} value  ‖W‖
 * @property {Float64Array} dual  a multiplier per row
 * @property {boolean[]} support  whether a row holds with equality
 */

export {};
