// Singular values of small matrices by one-sided Jacobi rotations, accurate however small they are.

/** @typedef {import("./types.js").Matrix} Matrix */

const SWEEPS = 40;
const ROTATED = 1e-15;
// Singular values below this share of the largest are rounding.
const ROUNDING = 1e-14;

/**
 * Rotate the columns of M V until they are orthogonal: their lengths are the singular values.
 * @param {Float64Array} M  rows × columns
 * @param {number} columns
 */
function orthogonalColumns(M, columns) {
  const B = M.slice();
  const V = new Float64Array(columns * columns);
  for (let k = 0; k < columns; k++) V[k * columns + k] = 1;
  for (let sweep = 0, moved = true; moved && sweep < SWEEPS; sweep++) {
    moved = false;
    for (let a = 0; a < columns; a++) {
      for (let b = a + 1; b < columns; b++) moved = rotatePair(B, V, columns, a, b) || moved;
    }
  }
  const sigma = new Float64Array(columns);
  for (let j = 0; j < B.length; j++) sigma[j % columns] += B[j] * B[j];
  return { B, V, sigma: sigma.map(Math.sqrt) };
}

/** Make columns a and b of B orthogonal; returns whether they were not.
 * @param {Float64Array} B @param {Float64Array} V @param {number} columns
 * @param {number} a @param {number} b
 */
function rotatePair(B, V, columns, a, b) {
  let [aa, bb, ab] = [0, 0, 0];
  for (let j = 0; j < B.length; j += columns) {
    aa += B[j + a] * B[j + a];
    bb += B[j + b] * B[j + b];
    ab += B[j + a] * B[j + b];
  }
  if (!(Math.abs(ab) > ROTATED * Math.sqrt(aa * bb))) return false;
  const slope = (bb - aa) / (2 * ab);
  const tangent = (slope < 0 ? -1 : 1) / (Math.abs(slope) + Math.hypot(1, slope));
  const cosine = 1 / Math.hypot(1, tangent);
  const sine = cosine * tangent;
  for (const M of [B, V]) {
    for (let j = 0; j < M.length; j += columns) {
      const [x, y] = [M[j + a], M[j + b]];
      M[j + a] = cosine * x - sine * y;
      M[j + b] = sine * x + cosine * y;
    }
  }
  return true;
}

/**
 * Replace D = U Σ Vᵀ by U Vᵀ, over singular values that are not rounding; returns Σ's sum.
 * @param {Float64Array} D  rows × columns
 * @param {number} columns
 */
export function polarFactor(D, columns) {
  let scale = 0;
  for (let j = 0; j < D.length; j++) scale = Math.max(scale, Math.abs(D[j]));
  if (scale === 0) return 0;
  for (let j = 0; j < D.length; j++) D[j] /= scale;
  const { B, V, sigma } = orthogonalColumns(D, columns);
  let [largest, sum] = [0, 0];
  for (let k = 0; k < columns; k++) {
    largest = Math.max(largest, sigma[k]);
    sum += sigma[k];
  }
  D.fill(0);
  for (let k = 0; k < columns; k++) {
    if (sigma[k] <= ROUNDING * largest) continue;
    for (let j = 0; j < D.length; j += columns) {
      const u = B[j + k] / sigma[k];
      for (let c = 0; c < columns; c++) D[j + c] += u * V[c * columns + k];
    }
  }
  return scale * sum;
}

/** Write W = K Qᵀ with KᵀK = QᵀQ. @param {Matrix} W @param {number} d */
export function balancedFactors(W, d) {
  const { B, V, sigma } = orthogonalColumns(W, d);
  const scale = sigma.map((value) => (value > 0 ? Math.sqrt(value) : 1));
  return {
    K: B.map((value, j) => value / scale[j % d]),
    Q: V.map((value, j) => value * Math.sqrt(sigma[j % d])),
  };
}

/** The largest singular value. @param {Float64Array} M  rows × columns @param {number} columns */
export function largestSingular(M, columns) {
  return Math.max(...orthogonalColumns(M, columns).sigma);
}

/** The least and the largest singular value of a square matrix. @param {number[][]} M */
export function singularRange(M) {
  const { sigma } = orthogonalColumns(Float64Array.from(M.flat()), M.length);
  return [Math.min(...sigma), Math.max(...sigma)];
}
