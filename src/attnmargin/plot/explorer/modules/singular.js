// Directions and factors from singular values.

import { jacobi } from "./algebra.js";

/** @typedef {import("./types.js").Matrix} Matrix */

// Singular values below this share of the largest are rounding.
const VANISHING = 1e-14;

/** Replace D = U Σ Vᵀ by U Vᵀ, over singular values that are not rounding; returns their sum.
 * @param {Matrix} D
 */
export function polarFactor(D) {
  const [d, scale] = [Math.sqrt(D.length), D.reduce((most, x) => Math.max(most, Math.abs(x)), 0)];
  if (scale === 0) return 0;
  const { US, V, s } = jacobi(D.map((x) => x / scale));
  const largest = Math.max(...s);
  D.fill(0);
  for (let k = 0; k < d; k++) {
    if (s[k] <= VANISHING * largest) continue;
    for (let r = 0; r < d; r++) {
      for (let c = 0; c < d; c++) D[r * d + c] += US[r * d + k] / s[k] * V[c * d + k];
    }
  }
  return scale * s.reduce((sum, value) => sum + value, 0);
}

/** Write W = K Qᵀ with KᵀK = QᵀQ. @param {Matrix} W */
export function balancedFactors(W) {
  const { US, V, s } = jacobi(W);
  const root = s.map(Math.sqrt);
  const K = US.map((x, j) => x / (root[j % s.length] || 1));
  return { K, Q: V.map((x, j) => x * root[j % s.length]) };
}
