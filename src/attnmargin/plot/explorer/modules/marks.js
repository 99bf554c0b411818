// Marks of the picture: shapes of tokens, arrows, lines. All return SVG markup.
import { escaped } from "./dom.js";

const SHAPES = 4;

/** @param {number} x */
export function px(x) {
  return String(Math.round(x * 10) / 10);
}

/**
 * The outline of a token: circles, squares, triangles and diamonds tell sequences apart without colour.
 * @param {number} sequence
 * @param {number} r
 */
export function outline(sequence, r) {
  const kind = sequence % SHAPES;
  if (kind === 0) return `M${px(-r)},0a${px(r)},${px(r)} 0 1,0 ${px(2 * r)},0a${px(r)},${px(r)} 0 1,0 ${px(-2 * r)},0z`;
  if (kind === 1) return polygon(4, 1.2 * r, Math.PI / 4);
  if (kind === 2) return polygon(3, 1.35 * r, Math.PI / 2);
  return polygon(4, 1.3 * r, Math.PI / 2);
}

/** @param {number} corners @param {number} r @param {number} turn */
function polygon(corners, r, turn) {
  const points = Array.from({ length: corners }, (_, k) => {
    const angle = turn + (2 * Math.PI * k) / corners;
    return `${px(r * Math.cos(angle))},${px(-r * Math.sin(angle))}`;
  });
  return `M${points.join("L")}z`;
}

/** A star with five points. @param {number} r */
export function star(r) {
  const points = Array.from({ length: 10 }, (_, k) => {
    const [length, angle] = [k % 2 ? 0.42 * r : r, Math.PI / 2 + (Math.PI * k) / 5];
    return `${px(length * Math.cos(angle))},${px(-length * Math.sin(angle))}`;
  });
  return `M${points.join("L")}z`;
}

/**
 * An arrow from the centre.
 * @param {number[]} to
 * @param {string} kind CSS class
 * @param {string} [label]
 */
export function arrow(to, kind, label = "") {
  const [x, y] = to;
  const length = Math.hypot(x, y);
  if (length < 1) return "";
  const [u, v] = [x / length, y / length];
  const tip = Math.min(11, length);
  const [bx, by] = [x - tip * u, y - tip * v];
  const head = `${px(x)},${px(y)} ${px(bx - 5 * v)},${px(by + 5 * u)} ${px(bx + 5 * v)},${px(by - 5 * u)}`;
  const name = label ? writing([x + 12 * u, y + 12 * v], label, kind) : "";
  return `<g class="arrow ${kind}"><line x1="0" y1="0" x2="${px(bx)}" y2="${px(by)}"/>` +
    `<polygon points="${head}"/></g>${name}`;
}

/** @param {number[]} at @param {string} text @param {string} kind */
export function writing(at, text, kind) {
  return `<text class="writing ${kind}" x="${px(at[0])}" y="${px(at[1])}">${escaped(text)}</text>`;
}

/**
 * A line across the picture: all points whose product with the unit vector n is c.
 * @param {number[]} n
 * @param {number} c
 * @param {string} kind
 */
export function line(n, c, kind) {
  const far = 900;
  const [x, y] = [n[0] * c, n[1] * c];
  return `<line class="${kind}" x1="${px(x - far * n[1])}" y1="${px(y + far * n[0])}" ` +
    `x2="${px(x + far * n[1])}" y2="${px(y - far * n[0])}"/>`;
}

/**
 * The band between two parallel lines.
 * @param {number[]} n
 * @param {number} c
 * @param {number} e
 * @param {string} kind
 */
export function band(n, c, e, kind) {
  const far = 900;
  const corner = (/** @type {number} */ k, /** @type {number} */ side) =>
    `${px(n[0] * k - side * far * n[1])},${px(n[1] * k + side * far * n[0])}`;
  return `<polygon class="${kind}" points="${corner(c, 1)} ${corner(c, -1)} ${corner(e, -1)} ${corner(e, 1)}"/>`;
}

/** A path through points. @param {number[][]} points @param {string} kind */
export function trail(points, kind) {
  if (points.length < 2) return "";
  return `<polyline class="${kind}" points="${points.map((p) => `${px(p[0])},${px(p[1])}`).join(" ")}"/>`;
}
