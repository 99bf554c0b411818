// The picture of one plane: tokens that can be dragged, the direction, its margin, the run.
/** @import { Data } from "./types.js" */
/** @import { State } from "./state.js" */
/** @import { View } from "./view.js" */
/** @import { Look } from "./look.js" */
/** @import { Frame } from "./play.js" */
import { setAttributes, svg } from "./dom.js";
import { arrow, band, line, outline, px, star, trail, writing } from "./marks.js";
import { sequenceName, tokenName } from "./state.js";
import { HALF, dot, times, toDisc, toScreen } from "./view.js";

/**
 * What a person can take hold of: a token, a query, the head, or the start.
 * @typedef {{kind: string, i: number, t: number}} Handle
 */
/**
 * What is drawn: `frames` and `paths` are of the run, and of the second one if there is one.
 * @typedef {{state: State, view: View, look: Look, frames: Frame[], paths: Float64Array[][], map: string}} Drawing
 */

const LEAST = 7, MOST = 13;

/** @param {Handle} handle */
export function handleKey(handle) {
  return `${handle.kind}-${handle.i}-${handle.t}`;
}

/**
 * All handles of a state, in the order of the tab key; the plane of wide tokens is that of one sequence.
 * @param {State} state
 * @returns {Handle[]}
 */
export function handlesOf(state) {
  const shared = state.data.v.length <= 2;
  const handles = state.data.X.flatMap((tokens, i) => (shared || i === state.focus ? [
    ...tokens.map((_, t) => ({ kind: "token", i, t })), { kind: "query", i, t: 0 },
  ] : []));
  return [...handles, { kind: "head", i: 0, t: 0 }, { kind: "start", i: state.focus, t: 0 }];
}

/** @returns {{element: SVGElement, draw: (drawing: Drawing) => void}} */
export function makePicture() {
  const [below, held] = [svg("g"), svg("g")];
  const size = `${-HALF} ${-HALF} ${2 * HALF} ${2 * HALF}`;
  const element = svg("svg", {
    viewBox: size, class: "plane", role: "group",
    "aria-label": "The plane of tokens. Tab to a token, a query, the head or the start; arrow keys move it.",
  }, below, held);
  /** @type {Map<string, SVGElement>} */
  const known = new Map();
  return {
    element,
    draw(drawing) {
      below.innerHTML = background(drawing);
      drawHandles(held, known, drawing);
    },
  };
}

/** @param {Drawing} drawing */
function background({ state, view, look, frames, paths, map }) {
  const z = state.data.z[state.focus];
  const parts = [`<circle class="disc" r="${px(view.radius)}"/>`];
  if (map) {
    const r = px(view.radius);
    parts.push(`<image class="map" x="-${r}" y="-${r}" width="${px(2 * view.radius)}" height="${px(2 * view.radius)}" href="${map}"/>`);
  }
  if (look.solution.W) parts.push(marginLines(state, view, look, look.solution.W));
  paths.forEach((Ws, run) => {
    parts.push(trail(Ws.map((W) => toDisc(view, times(W, z))), `trail run${run}`));
  });
  parts.push(arrow(toScreen(view, state.data.v), "head", "head"));
  frames.forEach((frame, run) => {
    parts.push(arrow(toDisc(view, times(frame.W, z)), `weights run${run}`, frames.length > 1 ? "W z " + "①②"[run] : "W z"));
  });
  return parts.join("");
}

/**
 * The direction W_mm z of the sequence in focus; attention is the same along the lines across it.
 * @param {State} state @param {View} view @param {Look} look @param {ArrayLike<number>} W
 */
function marginLines(state, view, look, W) {
  const i = state.focus, u = times(W, state.data.z[i]);
  const length = Math.hypot(dot(view.u, u), dot(view.w, u));
  // Without a direction, W is NaN.
  if (!(length > 1e-12)) return "";
  const n = [dot(view.u, u) / length, -dot(view.w, u) / length];
  const high = (view.scale * dot(u, state.data.X[i][look.shown[i]])) / length;
  const low = high - view.scale / length;
  const tip = [n[0] * 0.92 * view.radius, n[1] * 0.92 * view.radius];
  return band(n, high, low, "margin") + line(n, high, "level") + line(n, low, "level below") +
    arrow(tip, "direction") + writing([tip[0] - 14 * n[1], tip[1] + 14 * n[0]], "W_mm z", "direction");
}

/**
 * Handles stay the same elements, so that a drag or the focus of the keyboard is not lost.
 * @param {SVGElement} group
 * @param {Map<string, SVGElement>} known
 * @param {Drawing} drawing
 */
function drawHandles(group, known, drawing) {
  const handles = handlesOf(drawing.state);
  const keys = new Set(handles.map(handleKey));
  for (const [key, element] of known) {
    if (!keys.has(key)) { element.remove(); known.delete(key); }
  }
  for (const handle of handles) {
    const key = handleKey(handle);
    let element = known.get(key);
    if (!element) {
      element = svg("g", { tabindex: 0, role: "button", "data-handle": key });
      known.set(key, element);
      group.append(element);
    }
    drawHandle(element, handle, drawing);
  }
}

/** @param {SVGElement} element @param {Handle} handle @param {Drawing} drawing */
function drawHandle(element, handle, drawing) {
  const { state } = drawing;
  const [x, y] = placeOf(handle, drawing);
  const away = handle.i !== state.focus && handle.kind !== "head";
  setAttributes(element, {
    class: `handle ${handle.kind} s${handle.i % 8}${away ? " away" : ""}`,
    transform: `translate(${px(x)},${px(y)})`,
    "aria-label": spoken(handle, drawing),
  });
  const inside = insideOf(handle, drawing);
  if (element.innerHTML !== inside) element.innerHTML = inside;
}

/** @param {Handle} handle @param {Drawing} drawing */
function placeOf({ kind, i, t }, { state, view }) {
  const data = state.data;
  if (kind === "start") return toDisc(view, times(state.start, data.z[i]));
  return toScreen(view, kind === "token" ? data.X[i][t] : kind === "query" ? data.z[i] : data.v);
}

/** @param {Handle} handle @param {Drawing} drawing */
function insideOf({ kind, i, t }, drawing) {
  const { state, look, frames } = drawing;
  if (kind === "head") return `<circle class="grip" r="9"/>`;
  if (kind === "start") return `<circle class="ring" r="8"/><path class="cross" d="M-4,0H4M0,-4V4"/>`;
  if (kind === "query") return `<path class="query" d="M0,-9L7,0L0,9L-7,0z"/>` + writing([0, -15], `z${sequenceName(i)}`, "name");
  const share = frames[0].attention[i][t];
  const r = LEAST + (MOST - LEAST) * Math.sqrt(share);
  const parts = [`<circle class="reach" r="18"/>`];
  if (look.shown[i] === t) parts.push(`<circle class="wins" r="${px(r + 6)}"/>`);
  else if (look.support[i][t]) parts.push(`<circle class="guards" r="${px(r + 6)}"/>`);
  parts.push(`<path class="token" style="--a:${share.toFixed(3)}" d="${outline(i, r)}"/>`);
  if (look.best[i] === t) parts.push(`<path class="best" d="${star(5)}"/>`);
  return parts.join("") + writing([0, -r - 12], tokenName(state, i, t), "name");
}

/** @param {Handle} handle @param {Drawing} drawing */
function spoken({ kind, i, t }, { state, look, frames }) {
  if (kind === "head") return "head: its direction gives tokens their scores";
  if (kind === "start") return `start of training, for the query of sequence ${sequenceName(i)}`;
  if (kind === "query") return `z${sequenceName(i)}, query of sequence ${sequenceName(i)}`;
  const role = look.shown[i] === t ? ", selected" : look.support[i][t] ? ", support token" : "";
  const best = look.best[i] === t ? ", best score of its sequence" : "";
  return `token ${tokenName(state, i, t)}${role}${best}, score ${look.scores[i][t].toFixed(2)}, ` +
    `attention ${(100 * frames[0].attention[i][t]).toFixed(0)} %`;
}
