// Dense linear algebra for small matrices, row-major in Float64Arrays.

/** Aᵀ of a square matrix. @param {Float64Array} A @returns {Float64Array} */
export function transposed(A) {
  const n = Math.round(Math.sqrt(A.length));
  const T = new Float64Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) T[j * n + i] = A[i * n + j];
  return T;
}

/** A B of square matrices. @param {Float64Array} A @param {Float64Array} B @returns {Float64Array} */
export function multiplied(A, B) {
  const n = Math.round(Math.sqrt(A.length));
  const C = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < n; k++) {
      const factor = A[i * n + k];
      for (let j = 0; j < n; j++) C[i * n + j] += factor * B[k * n + j];
    }
  }
  return C;
}

/**
 * The singular value decomposition by one-sided Jacobi rotations: A V = U diag(s).
 * @param {Float64Array} A  square
 * @returns {{US: Float64Array, V: Float64Array, s: Float64Array}}  US = A V, with orthogonal columns
 */
export function jacobi(A) {
  const n = Math.round(Math.sqrt(A.length));
  const [B, V] = [transposed(A), identity(n)]; // rows of B are columns of A V
  for (let sweep = 0, moved = true; moved && sweep < 40; sweep++) {
    moved = false;
    for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) moved = turn(B, V, n, i, j) || moved;
  }
  const s = new Float64Array(n);
  for (let i = 0; i < n; i++) s[i] = Math.hypot(...B.subarray(i * n, i * n + n));
  return { US: transposed(B), V: transposed(V), s };
}

/** Make rows i and j of B orthogonal. @param {Float64Array} B @param {Float64Array} V */
function turn(B, V, /** @type {number} */ n, /** @type {number} */ i, /** @type {number} */ j) {
  let [a, b, c] = [0, 0, 0];
  for (let k = 0; k < n; k++) {
    const [x, y] = [B[i * n + k], B[j * n + k]];
    a += x * x;
    b += y * y;
    c += x * y;
  }
  if (!(Math.abs(c) > 1e-16 * Math.sqrt(a * b))) return false;
  const ratio = (b - a) / (2 * c);
  const tangent = (ratio < 0 ? -1 : 1) / (Math.abs(ratio) + Math.hypot(1, ratio));
  const cosine = 1 / Math.hypot(1, tangent);
  for (const M of [B, V]) {
    for (let k = 0; k < n; k++) {
      const [x, y] = [M[i * n + k], M[j * n + k]];
      M[i * n + k] = cosine * (x - tangent * y);
      M[j * n + k] = cosine * (y + tangent * x);
    }
  }
  return true;
}

/** @param {number} n */
export function identity(n) {
  return new Float64Array(n * n).map((_, k) => (k % (n + 1) === 0 ? 1 : 0));
}

/** @param {Float64Array} A  square @returns {number[]} */
export function singularValues(A) {
  return [...jacobi(A).s];
}

/**
 * The lower Cholesky factor of a symmetric matrix, or null if it is not positive definite.
 * @param {Float64Array} A
 * @returns {Float64Array | null}
 */
export function choleskyFactor(A) {
  const n = Math.round(Math.sqrt(A.length));
  const L = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = A[i * n + j];
      for (let k = 0; k < j; k++) sum -= L[i * n + k] * L[j * n + k];
      if (i === j && !(sum > 0)) return null;
      L[i * n + j] = i === j ? Math.sqrt(sum) : sum / L[j * n + j];
    }
  }
  return L;
}

/** Solve L Lᵀ x = b. @param {Float64Array} L @param {Float64Array} b @returns {Float64Array} */
export function solveCholesky(L, b) {
  const [n, x] = [b.length, b.slice()];
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) x[i] -= L[i * n + k] * x[k];
    x[i] /= L[i * n + i];
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= L[k * n + i] * x[k];
    x[i] /= L[i * n + i];
  }
  return x;
}
