// The dual active-set method of Goldfarb and Idnani (1983) for min ½‖w‖² subject to A w ≥ b.
//
// The iterate is always the exact solution for the active rows alone, with A_activeᵀ = Q R. A
// violated row enters; rows whose multiplier would turn negative leave. If no step exists, the
// active rows and the entering one contradict each other, with as few rows as their rank allows.

/**
 * @typedef {object} System  rows of about unit length
 * @property {number} D  numbers in a row
 * @property {Float64Array} A  row m begins at m·D
 * @property {Float64Array} b
 * @property {Float64Array} length  what rows were divided by; 0 for rows of zeros
 * @property {Int32Array} ignored  stamp of the solve that ignores a row, because of rounding
 * @property {number} stamp
 * @property {number} steps  rows that have entered so far, in all solves
 */

/**
 * @typedef {object} Basis  k active rows
 * @property {number} k
 * @property {number} most
 * @property {Int32Array} row
 * @property {Float64Array} dual
 * @property {Float64Array} Q  column c begins at c·D
 * @property {Float64Array} R  column c begins at c·most
 * @property {Float64Array} w
 * @property {Float64Array} t  Qᵀa of an entering row
 * @property {Float64Array} r  R⁻¹t
 */

export const SOLVED = 0;
export const INFEASIBLE = 1;
export const STALLED = 2;
// A row closer than this to the span of the active rows depends on them.
const DEPENDENT = 1e-11;
// A dependent row that misses its bound by less is satisfied; a smaller coefficient is zero.
const [MISSES, NOTHING] = [1e-9, 1e-12];
// A row holds with equality within this share of its bound and of ‖w‖.
const TIGHT = 1e-11;
// A row may miss its bound by these shares of the bound and of ‖w‖.
const [OF_BOUND, OF_LENGTH] = [1e-14, 8 * Number.EPSILON];

/**
 * Divide rows by powers of two, which does not round, to about unit length, in place.
 * @param {number} D
 * @param {Float64Array} A
 * @param {Float64Array} b
 * @returns {System}
 */
export function system(D, A, b) {
  const length = new Float64Array(b.length);
  for (let m = 0; m < b.length; m++) {
    const row = A.subarray(m * D, m * D + D);
    const norm = Math.hypot(...row);
    length[m] = norm > 0 ? 2 ** Math.round(Math.log2(norm)) : 0;
    if (norm > 0) for (let c = 0; c < D; c++) row[c] /= length[m];
    if (norm > 0) b[m] /= length[m];
  }
  return { D, A, b, length, ignored: new Int32Array(b.length), stamp: 0, steps: 0 };
}

/** @param {number} D @param {number} rows @returns {Basis} */
export function emptyBasis(D, rows) {
  const most = Math.min(D, rows) + 1;
  const [row, dual, w] = [new Int32Array(most), new Float64Array(most), new Float64Array(D)];
  const [Q, R] = [new Float64Array(most * D), new Float64Array(most * most)];
  return { k: 0, most, row, dual, Q, R, w, t: new Float64Array(most), r: new Float64Array(most) };
}

/** Copy what a solve continues from. @param {Basis} to @param {Basis} from */
export function copyBasis(to, from) {
  to.k = from.k;
  to.row.set(from.row);
  to.dual.set(from.dual);
  to.Q.set(from.Q);
  to.R.set(from.R);
  to.w.set(from.w);
}

/** Solve R x = x in place. @param {Basis} S @param {Float64Array} x */
function backward({ R, k, most }, x) {
  for (let a = k - 1; a >= 0; a--) {
    x[a] /= R[a * most + a];
    for (let c = 0; c < a; c++) x[c] -= x[a] * R[a * most + c];
  }
}

/** Solve Rᵀx = x in place. @param {Basis} S @param {Float64Array} x */
function forward({ R, k, most }, x) {
  for (let a = 0; a < k; a++) {
    for (let c = 0; c < a; c++) x[a] -= R[a * most + c] * x[c];
    x[a] /= R[a * most + a];
  }
}

/**
 * Subtract from column k of Q what lies in the span of the others; add its coefficients to t.
 * @param {System} P @param {Basis} S
 */
function orthogonalise({ D }, { Q, k, t }) {
  const h = k * D;
  let rest = 0;
  for (let a = 0; a < k; a++) {
    let share = 0;
    for (let c = 0; c < D; c++) share += Q[a * D + c] * Q[h + c];
    for (let c = 0; c < D; c++) Q[h + c] -= share * Q[a * D + c];
    t[a] += share;
  }
  for (let c = 0; c < D; c++) rest += Q[h + c] * Q[h + c];
  return rest;
}

/**
 * Split row m into Q t + h with h in column k of Q, and set r; return ‖h‖², 0 if it is dependent.
 * @param {System} P @param {Basis} S @param {number} m
 */
function project(P, S, m) {
  const { D, A } = P;
  const { k, Q, t, r } = S;
  t.fill(0);
  for (let c = 0; c < D; c++) Q[k * D + c] = A[m * D + c];
  let rest = orthogonalise(P, S);
  if (k > 0) rest = orthogonalise(P, S);
  let size = 1;
  for (let a = 0; a < k; a++) r[a] = t[a];
  backward(S, r);
  for (let a = 0; a < k; a++) size += Math.abs(r[a]);
  return k < D && Math.sqrt(rest) > DEPENDENT * size ? rest : 0;
}

/** Append the row that was projected. @param {System} P @param {Basis} S */
function append({ D }, S, /** @type {number} */ m, /** @type {number} */ rest) {
  const { k, most, Q, R, t } = S;
  const norm = Math.sqrt(rest);
  for (let c = 0; c < D; c++) Q[k * D + c] /= norm;
  for (let a = 0; a < k; a++) R[k * most + a] = t[a];
  R[k * most + k] = norm;
  S.row[k] = m;
  S.k++;
}

/** Remove active row p; rotations make R triangular again. @param {System} P @param {Basis} S */
function drop({ D }, S, /** @type {number} */ p) {
  const { most, Q, R, row, dual } = S;
  S.k--;
  for (let c = p; c < S.k; c++) {
    row[c] = row[c + 1];
    dual[c] = dual[c + 1];
    for (let a = 0; a < c + 2; a++) R[c * most + a] = R[(c + 1) * most + a];
  }
  for (let a = p; a < S.k; a++) {
    const length = Math.hypot(R[a * most + a], R[a * most + a + 1]);
    const [cosine, sine] = [R[a * most + a] / length, R[a * most + a + 1] / length];
    for (let c = a; c < S.k; c++) rotate(R, c * most + a, c * most + a + 1, cosine, sine);
    for (let c = 0; c < D; c++) rotate(Q, a * D + c, (a + 1) * D + c, cosine, sine);
  }
}

/** @param {Float64Array} x @param {number} i @param {number} j @param {number} cosine @param {number} sine */
function rotate(x, i, j, cosine, sine) {
  const [a, b] = [x[i], x[j]];
  x[i] = cosine * a + sine * b;
  x[j] = cosine * b - sine * a;
}

/** Set w and the multipliers to the exact solution for the active rows. @param {System} P @param {Basis} S */
function settle({ D, b }, S) {
  const { k, row, dual, w, Q } = S;
  for (let a = 0; a < k; a++) dual[a] = b[row[a]];
  forward(S, dual);
  w.fill(0);
  for (let a = 0; a < k; a++) for (let c = 0; c < D; c++) w[c] += dual[a] * Q[a * D + c];
  backward(S, dual);
  for (let a = 0; a < k; a++) dual[a] = Math.max(dual[a], 0);
}

/** @param {System} P @param {number} m @param {Float64Array} w */
export function slackOf({ D, A, b }, m, w) {
  let slack = -b[m];
  for (let c = 0; c < D; c++) slack += A[m * D + c] * w[c];
  return slack;
}

/**
 * Find the most violated row of a list, −1 if there is none.
 * @param {System} P @param {Basis} S @param {ArrayLike<number>} list @param {number} count
 */
function violated(P, S, list, count) {
  let [least, worst, square] = [0, -1, 0];
  for (let c = 0; c < P.D; c++) square += S.w[c] * S.w[c];
  const noise = OF_LENGTH * Math.sqrt(square);
  for (let i = 0; i < count; i++) {
    const m = list[i];
    const slack = slackOf(P, m, S.w);
    const counts = slack < least && slack < -OF_BOUND * Math.abs(P.b[m]) - noise;
    if (counts && P.ignored[m] !== P.stamp && !isActive(S, m)) [least, worst] = [slack, m];
  }
  return worst;
}

/** @param {Basis} S @param {number} m */
function isActive({ row, k }, m) {
  for (let a = 0; a < k; a++) if (row[a] === m) return true;
  return false;
}

/** The active row that limits a step, −1 if none does. @param {Basis} S */
function blocking({ k, r, dual }) {
  let [step, place, size] = [Infinity, -1, 0];
  for (let a = 0; a < k; a++) size = Math.max(size, Math.abs(r[a]));
  for (let a = 0; a < k; a++) {
    if (r[a] > NOTHING * size && dual[a] < step * r[a]) [step, place] = [dual[a] / r[a], a];
  }
  return place;
}

/** Whether rounding alone makes a dependent row miss its bound. @param {System} P @param {Basis} S */
function negligible({ b }, { k, r, row }, /** @type {number} */ m, /** @type {number} */ missing) {
  let size = Math.abs(b[m]);
  for (let a = 0; a < k; a++) size += Math.abs(r[a] * b[row[a]]);
  return missing <= MISSES * size;
}

/**
 * Make a violated row active.
 * @param {System} P @param {Basis} S @param {number} m
 */
function enter(P, S, m) {
  let [missing, entering] = [-slackOf(P, m, S.w), 0];
  for (;;) {
    const rest = project(P, S, m);
    const place = blocking(S);
    const full = rest > 0 ? missing / rest : Infinity;
    if (full === Infinity && negligible(P, S, m, missing)) return STALLED;
    if (full === Infinity && place < 0) return INFEASIBLE;
    const step = Math.min(full, place < 0 ? Infinity : S.dual[place] / S.r[place]);
    for (let a = 0; a < S.k; a++) S.dual[a] -= step * S.r[a];
    entering += step;
    if (step === full) {
      append(P, S, m, rest);
      return SOLVED;
    }
    missing -= step * rest;
    drop(P, S, place);
  }
}

/** Turn the coefficients of row m into multipliers of a contradiction. @param {System} P @param {Basis} S */
function prove({ D, A }, S, /** @type {number} */ m) {
  const { k, row, r, dual, Q } = S;
  const rest = A.slice(m * D, m * D + D);
  for (let a = 0; a < k; a++) for (let c = 0; c < D; c++) rest[c] -= r[a] * A[row[a] * D + c];
  for (let a = 0; a < k; a++) {
    dual[a] = 0;
    for (let c = 0; c < D; c++) dual[a] += Q[a * D + c] * rest[c];
  }
  backward(S, dual);
  let size = 1;
  for (let a = 0; a < k; a++) size = Math.max(size, Math.abs(r[a]));
  for (let a = 0; a < k; a++) dual[a] = -r[a] > NOTHING * size ? -r[a] - dual[a] : 0;
  [row[k], dual[k]] = [m, 1];
  S.k++;
}

/**
 * Continue until all rows of a list hold. If they contradict each other, the basis is the proof.
 * @param {System} P
 * @param {Basis} S
 * @param {ArrayLike<number>} list  rows, the active ones among them
 * @param {number} count  how many of the list
 */
export function advance(P, S, list, count) {
  P.stamp++;
  for (let turn = 0; turn < 100 + 20 * count; turn++) {
    const m = violated(P, S, list, count);
    if (m < 0) return SOLVED;
    P.steps++;
    const outcome = enter(P, S, m);
    if (outcome === INFEASIBLE) {
      prove(P, S, m);
      return INFEASIBLE;
    }
    if (outcome === STALLED) P.ignored[m] = P.stamp;
    settle(P, S);
  }
  return STALLED;
}

/**
 * Whether a row holds with equality, up to rounding.
 * @param {System} P @param {number} m @param {Float64Array} w @param {number} norm  ‖w‖
 */
export function isTight(P, m, w, norm) {
  return slackOf(P, m, w) <= TIGHT * (Math.abs(P.b[m]) + norm);
}
