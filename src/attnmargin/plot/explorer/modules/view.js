// The plane that is drawn: its axes, its scale, and the disc in which weights are shown.
/** @import { Data } from "./types.js" */

/**
 * `u`, `w` are orthonormal axes of length d; `scale` is pixels per unit; `radius` that of the disc.
 * @typedef {{u: number[], w: number[], scale: number, radius: number}} View
 */

export const HALF = 300;
// W z at this length is drawn half way out: the disc holds vectors of every length.
const MIDDLE = 4;

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function dot(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

/** W z. @param {ArrayLike<number>} W @param {number[]} z */
export function times(W, z) {
  const d = z.length;
  return Array.from({ length: d }, (_, a) => {
    let sum = 0;
    for (let b = 0; b < d; b++) sum += W[a * d + b] * z[b];
    return sum;
  });
}

/**
 * Choose the plane: that of the tokens if they have two coordinates; else the plane of a direction
 * and the widest spread of tokens across it.
 * @param {Data} data
 * @param {number} focus
 * @param {number[] | null} direction W_mm z of the sequence in focus
 * @returns {View}
 */
export function viewOf(data, focus, direction) {
  const d = data.v.length;
  if (d === 1) return viewAlong(data, [1], [0]);
  if (d === 2) return viewAlong(data, [1, 0], [0, 1]);
  const u = unit(direction && dot(direction, direction) > 0 ? direction : data.v, 0);
  return viewAlong(data, u, widest(data.X[focus], u));
}

/** @param {Data} data @param {number[]} u @param {number[]} w @returns {View} */
export function viewAlong(data, u, w) {
  let size = 1e-6;
  for (const x of [...data.X.flat(), ...data.z, data.v]) {
    size = Math.max(size, Math.hypot(dot(u, x), dot(w, x)));
  }
  const radius = 0.93 * HALF;
  return { u, w, scale: (0.82 * radius) / size, radius };
}

/** @param {number[]} x @param {number} fallback an axis for the zero vector */
function unit(x, fallback) {
  const length = Math.hypot(...x);
  return x.map((value, k) => (length > 0 ? value / length : Number(k === fallback)));
}

/**
 * The direction across u in which tokens spread the most, by power iteration.
 * @param {number[][]} tokens @param {number[]} u
 */
function widest(tokens, u) {
  const d = u.length;
  const mean = u.map((_, k) => tokens.reduce((sum, x) => sum + x[k], 0) / tokens.length);
  const rows = tokens.map((x) => across(x.map((value, k) => value - mean[k]), u));
  let w = across(u.map((_, k) => Math.sin(k + 1)), u);
  for (let round = 0; round < 60; round++) {
    const next = new Array(d).fill(0);
    for (const row of rows) {
      const along = dot(row, w);
      for (let k = 0; k < d; k++) next[k] += along * row[k];
    }
    if (Math.hypot(...next) < 1e-12) break;
    w = unit(across(next, u), 0);
  }
  return unit(w, u[0] ** 2 > 0.5 ? 1 : 0);
}

/** @param {number[]} x @param {number[]} u */
function across(x, u) {
  const along = dot(x, u);
  return x.map((value, k) => value - along * u[k]);
}

/** Pixels of a vector of token space. @param {View} view @param {ArrayLike<number>} x */
export function toScreen(view, x) {
  return [view.scale * dot(view.u, x), -view.scale * dot(view.w, x)];
}

/** The vector of token space that moves a point by so many pixels. @param {View} view @param {number} dx @param {number} dy */
export function fromScreen(view, dx, dy) {
  return view.u.map((value, k) => (dx * value - dy * view.w[k]) / view.scale);
}

/** Pixels of a vector of weights W z: its direction, and its length squeezed into the disc. @param {View} view @param {ArrayLike<number>} x */
export function toDisc(view, x) {
  const [a, b] = [dot(view.u, x), dot(view.w, x)];
  const factor = view.radius / (Math.hypot(a, b) + MIDDLE);
  return [a * factor, -b * factor];
}

/** The vector W z that is drawn at these pixels. @param {View} view @param {number} px @param {number} py */
export function fromDisc(view, px, py) {
  const r = Math.min(Math.hypot(px, py), 0.995 * view.radius);
  const stretch = r > 0 ? MIDDLE / (view.radius - r) * (r / Math.hypot(px, py)) : 0;
  return view.u.map((value, k) => (px * value - py * view.w[k]) * stretch);
}
