// The scene of the plane: the picture, what a person does with it, and the legend of the map.
/** @import { State } from "./state.js" */
/** @import { Look } from "./look.js" */
/** @import { Frame, History } from "./play.js" */
/** @import { GrowingMap } from "./startmap.js" */
/** @import { View } from "./view.js" */
/** @import { Handle } from "./picture.js" */
import { button, html } from "./dom.js";
import { listenToHands } from "./drag.js";
import { makePicture } from "./picture.js";
import { placeOfStep } from "./play.js";
import { selectionWords } from "./says.js";
import { beginMap, growMap, mapLegend, startAt } from "./startmap.js";
import { changedData, movedData, rounded } from "./state.js";
import { HALF, fromScreen, times, toDisc, viewOf } from "./view.js";

const MOST_TOKENS = 8, MOST_SEQUENCES = 6, TRAIL = 240, MOST_NAMED = 8;

/**
 * @typedef {object} PlaneScene
 * @property {HTMLElement} element
 * @property {SVGSVGElement} picture
 * @property {(state: State, look: Look, frames: Frame[], histories: History[]) => void} update
 * @property {(milliseconds: number) => {changed: boolean, left: boolean}} grow  the map
 * @property {(on: boolean) => void} showMap
 */

/**
 * @param {() => State} current
 * @param {(part: Partial<State>, dragging: boolean) => void} change
 * @returns {PlaneScene}
 */
export function makePlaneScene(current, change) {
  const picture = makePicture();
  const legend = html("div", { class: "legend", "aria-live": "polite" });
  const mapButton = button("map of starts", () => showMap(!mapOn), { "aria-pressed": "false", title: "colour every start by what training from there selects" });
  const more = button("add a token", () => addToken()), longer = button("add a sequence", () => addSequence());
  const less = button("remove sequence", () => removeSequence());
  const tools = html("div", { class: "tools" }, more, longer, less, mapButton);
  const hint = html("p", { class: "hint" },
    "Drag anything. Double-click adds a token, Delete removes one; with the keyboard: Tab and arrow keys.");
  const element = html("div", { class: "plane-scene" }, /** @type {Node} */ (picture.element), legend, tools, hint);
  let mapOn = false;
  /** @type {GrowingMap | null} */
  let map = null;
  let mapKey = "";
  /** @type {View} */
  let view = viewOf(current().data, current().focus, null);
  /** @type {View | null} */
  let kept = null;

  const showMap = (/** @type {boolean} */ on) => {
    mapOn = on;
    mapButton.setAttribute("aria-pressed", String(on));
    change({}, false);
  };
  const addToken = (/** @type {number[]} */ at = [0.3, 0.3]) => {
    const { data, focus } = current();
    if (data.X[focus].length >= MOST_TOKENS) return;
    const x = fromScreen(view, at[0] * HALF, at[1] * HALF).map(rounded);
    change({ data: changedData(data, (copy) => { copy.X[focus].push(x); }), words: null }, false);
  };
  const addSequence = () => {
    const { data } = current();
    if (data.X.length >= MOST_SEQUENCES) return;
    change({
      data: changedData(data, (copy) => {
        const last = copy.X.length - 1;
        copy.X.push(copy.X[last].map((x) => x.map((_, k) => rounded(0.9 * x[(k + 1) % x.length] * (k % 2 ? 1 : -1)))));
        copy.z.push(copy.z[last].map((_, k) => rounded(copy.z[last][(k + 1) % copy.z[last].length] * (k % 2 ? 1 : -1))));
        copy.y.push(-copy.y[last]);
      }), words: null, focus: data.X.length,
    }, false);
  };
  const removeSequence = () => {
    const { data, focus } = current();
    change({
      data: changedData(data, (copy) => { for (const part of [copy.X, copy.z, copy.y]) part.splice(focus, 1); }),
      words: null, focus: Math.max(0, focus - 1),
    }, false);
  };
  const move = (/** @type {Handle} */ handle, /** @type {number} */ dx, /** @type {number} */ dy) => {
    const state = current();
    if (handle.kind !== "start") {
      change({ data: movedData(state.data, handle, fromScreen(view, dx, dy)) }, true);
      return;
    }
    const [x, y] = toDisc(view, times(state.start, state.data.z[state.focus]));
    change({ start: Array.from(startAt(state, view, [x + dx, y + dy], state.start)) }, true);
  };
  const plane = /** @type {SVGSVGElement} */ (picture.element);
  listenToHands(plane, {
    take(handle) {
      kept = view;
      if (handle.kind !== "head" && handle.i !== current().focus) change({ focus: handle.i }, true);
    },
    move,
    release() { kept = null; change({}, false); },
    remove({ kind, i, t }) {
      const { data } = current();
      if (kind !== "token" || data.X[i].length < 2) return;
      change({ data: changedData(data, (copy) => { copy.X[i].splice(t, 1); }), words: null }, false);
    },
    add(x, y) { addToken([x / HALF, y / HALF]); },
  });
  const drawLegend = (/** @type {State} */ state) => {
    const all = map ? mapLegend(map) : [], open = all.reduce((rest, own) => rest - own.share, 1);
    const rows = all.sort((a, b) => b.share - a.share).filter((own) => own.share >= 0.005).slice(0, MOST_NAMED);
    legend.replaceChildren(...rows.map(({ selection, colour, share }) => {
      const box = html("i", { class: "box" });
      box.style.background = colour;
      return html("span", {}, box, ` ${selectionWords(state, selection)} ${(100 * share).toFixed(0)} %`);
    }), ...(all.length && open >= 0.005 ? [html("span", {}, `pale: undecided ${(100 * open).toFixed(0)} %`)] : []));
  };
  return {
    element, picture: plane, showMap,
    update(state, look, frames, histories) {
      const { X } = state.data;
      more.disabled = X[state.focus].length >= MOST_TOKENS;
      longer.disabled = X.length >= MOST_SEQUENCES;
      less.disabled = X.length < 2;
      const direction = look.solution.W && look.solution.status !== "infeasible"
        ? times(look.solution.W, state.data.z[state.focus]) : null;
      view = kept && kept.u.length === state.data.v.length ? kept : viewOf(state.data, state.focus, direction);
      const key = mapOn ? JSON.stringify([state.data, state.settings, state.focus, view]) : "";
      if (key !== mapKey) {
        mapKey = key;
        map = mapOn ? beginMap(state, view) : null;
        drawLegend(state);
      }
      const paths = histories.map((own, r) => thinned(own.Ws.slice(0, placeOfStep(own.steps, frames[r].step) + 1)));
      picture.draw({ state, view, look, frames, paths, map: map?.image ?? "" });
    },
    grow(milliseconds) {
      const changed = map?.left ? growMap(map, milliseconds) : false;
      if (changed) drawLegend(current());
      return { changed, left: map?.left ?? false };
    },
  };
}

/** Few enough points to draw. @template T @param {T[]} list @returns {T[]} */
function thinned(list) {
  const every = Math.ceil(list.length / TRAIL);
  return list.filter((_, k) => k % every === 0 || k === list.length - 1);
}

