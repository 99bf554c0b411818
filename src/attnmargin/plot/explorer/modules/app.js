// The explorer: one state, what is known of it, and the parts that show it.
/** @import { Selection } from "./types.js" */
/** @import { Settings, State } from "./state.js" */
/** @import { Look } from "./look.js" */
/** @import { Frame, History } from "./play.js" */
import { makeBars } from "./bars.js";
import { makeChoices } from "./choices.js";
import { makeControls } from "./controls.js";
import { makeCurves } from "./curves.js";
import { button, html } from "./dom.js";
import { makeFiles } from "./files.js";
import { impliedNorm } from "./guarantee.js";
import { lookAt } from "./look.js";
import { solveRowsIn } from "./norms.js";
import { graphScene } from "./nextgraph.js";
import { LAST_STEP, frameAt, runTo, startHistories } from "./play.js";
import { makePlayer } from "./player.js";
import { makePlaneScene } from "./planescene.js";
import { tokenRows } from "./rows.js";
import { directionWords, verdictWords } from "./says.js";
import { SENTENCES_DEFAULT, sentencesData, sentencesScene } from "./sentences.js";
import { defaultSettings, defaultState, quickSettings } from "./state.js";
import { makeTour } from "./tour.js";

// Steps that the end of a run is looked for: while something is dragged, and when it rests.
const QUICK = 400, PATIENT = 20000;
/** @type {[string, string][]} */
const SCENES = [["plane", "Plane"], ["sentences", "Sentences"], ["graph", "Next tokens"]];

/**
 * @typedef {object} Explorer
 * @property {() => State} state
 * @property {(part: Partial<State>) => void} set
 * @property {(seen: (state: State) => void) => void} watch  calls back when a change is complete
 * @property {() => Look} look
 * @property {(step: number) => Frame[]} frames
 */

/**
 * Put an explorer into an element.
 * @param {HTMLElement} root
 * @param {{state?: Partial<State>, tour?: boolean}} [options]
 * @returns {Explorer}
 */
export function mountExplorer(root, options = {}) {
  /** @type {State} */
  let state = { ...defaultState(), ...options.state };
  /** @type {Selection | null} */
  let asked = null;
  /** What the plane shows, while sentences are in its place. @type {Partial<State> | null} */
  let kept = null;
  /** @type {Look} */
  let look;
  /** @type {History[]} */
  let histories;
  let step = 0, goal = 0, waiting = false, before = 0, told = "";
  /** @type {((state: State) => void)[]} */
  const watchers = [];

  const change = (/** @type {Partial<State>} */ part, dragging = false) => {
    const rest = Object.keys(part).length === 0;
    if (!rest && (part.data || part.settings || part.second !== undefined)) asked = null;
    if (part.data) kept = null;
    state = withData({ ...state, ...part }, part);
    if (!rest && !onlyView(part)) {
      player.play(player.playing() && !part.data);
      step = goal = 0;
    }
    refresh(!dragging, onlyView(part) && !rest);
    if (!dragging) for (const seen of watchers) seen(state);
  };
  /** Look at the state anew, patiently or at once. */
  const refresh = (/** @type {boolean} */ thorough, viewOnly = false) => {
    if (!viewOnly) {
      look = lookAt(state, asked, thorough ? PATIENT : QUICK);
      if (step === 0) histories = startHistories(state);
    }
    draw();
  };
  const draw = () => {
    const frames = histories.map((own) => frameAt(own, step));
    for (const [name] of SCENES) parts[name].hidden = state.scene !== name;
    tabs.forEach((tab, k) => tab.setAttribute("aria-selected", String(SCENES[k][0] === state.scene)));
    const graph = state.scene === "graph";
    side.hidden = controls.hidden = graph;
    if (graph) graphs.update(state);
    else drawRuns(frames);
    soon();
  };
  const drawRuns = (/** @type {Frame[]} */ frames) => {
    if (state.scene === "plane") plane.update(state, look, frames, histories);
    else sentences.update(state, { ...look, selection: look.shown }, frames[0]);
    bars.element.hidden = state.scene !== "plane";
    bars.update(state, look, frames);
    curves.update(histories, look.endings.map((own, r) => targetOf(r, own.selection)), look.endings, step);
    choices.update(state, look, asked);
    player.update(step);
    drawVerdict();
    [first, second].forEach((own, r) => {
      const settings = r ? state.second : state.settings;
      own.element.hidden = !settings;
      if (settings) own.update(settings, state.data);
    });
    compare.textContent = state.second ? "one run" : "compare two runs";
  };
  /** The direction that a run turns to. */
  const targetOf = (/** @type {number} */ r, /** @type {Selection} */ selection) => {
    const settings = r && state.second ? state.second : state.settings;
    const known = r === 0 && String(selection) === String(look.shown) ? look.solution : solveRowsIn(impliedNorm(settings), tokenRows(state.data, selection, false), state.data.z);
    return known.status === "infeasible" ? null : known.W;
  };
  const drawVerdict = () => {
    const kinds = state.second ? [state.settings, state.second] : [state.settings];
    const said = kinds.map((own, r) => verdictWords(state, look.endings[r], own, look)), way = directionWords(state, look);
    // Readers of screens hear what changes.
    if (JSON.stringify([said, way]) === told) return;
    told = JSON.stringify([said, way]);
    verdict.replaceChildren(...said.map((words, r) => {
      const mark = kinds.length > 1 ? "①② "[r] + " " : "";
      return html("p", { class: `verdict ${words.kind}` }, html("strong", {}, mark + words.headline), ` ${words.why}`);
    }), html("p", { class: "direction" }, way));
  };
  /** Go to a step; what is far takes several frames. */
  const seek = (/** @type {number} */ wanted) => {
    goal = wanted;
    approach(50);
  };
  const approach = (/** @type {number} */ milliseconds) => {
    for (const own of histories) runTo(own, goal, milliseconds / histories.length);
    step = Math.min(goal, ...histories.map((own) => own.run.step));
    draw();
  };
  /** Ask for a frame if something moves. */
  const soon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(tick);
  };
  const tick = (/** @type {number} */ now) => {
    waiting = false;
    const passed = Math.min(Math.max(now - before, 0), 100);
    before = now;
    if (player.playing()) {
      const wanted = player.next(step, passed);
      for (const own of histories) runTo(own, wanted, 10 / histories.length);
      goal = step = Math.min(wanted, ...histories.map((own) => Math.max(own.run.step, step)));
      draw();
    } else if (step < goal) approach(12);
    else if (state.scene === "plane") {
      const { changed, left } = plane.grow(12);
      if (changed) draw();
      else if (left) soon();
    }
  };

  const player = makePlayer(seek, () => { before = performance.now(); soon(); });
  const curves = makeCurves();
  const bars = makeBars((i) => change({ focus: i }), (i) => {
    const data = structuredClone(state.data);
    data.y[i] = -data.y[i];
    change({ data });
  });
  const choices = makeChoices((selection) => { asked = selection; refresh(true); });
  /** Show a scene; sentences give the plane back as it was. */
  const goTo = (/** @type {string} */ scene) => {
    const { data, words, start, focus } = state;
    if (scene === "sentences") kept ??= { data, words, start, focus };
    change(scene === "plane" && kept ? { scene, ...kept } : { scene });
  };
  const settle = (/** @type {Partial<Settings>} */ part) => change({ settings: { ...state.settings, ...part } });
  const settleSecond = (/** @type {Partial<Settings>} */ part) =>
    change({ second: { ...(state.second ?? defaultSettings()), ...part } });
  const first = makeControls("Run", settle), second = makeControls("② Second run", settleSecond);
  const compare = button("compare two runs", () => change({
    second: state.second ? null : { ...state.settings, method: "mirror", parameter: "W", p: 1.2 },
  }));
  const plane = makePlaneScene(() => state, change);
  const sentences = sentencesScene((part) => change(part));
  const graphs = graphScene((part) => change(part));
  /** @type {Record<string, HTMLElement>} */
  const parts = { plane: plane.element, sentences: sentences.element, graph: graphs.element };
  const tabs = SCENES.map(([name, words]) => button(words, () => goTo(name), { role: "tab" }));
  const verdict = html("div", { class: "says", "aria-live": "polite" });
  const side = html("div", { class: "side" }, verdict, player.element, bars.element, curves.element, choices.element);
  const controls = html("div", { class: "settings" }, first.element, second.element, compare);
  const files = makeFiles(root, () => state, change, () => plane.picture);
  const tour = options.tour === false ? null : makeTour((part, map) => {
    asked = null;
    change({ ...defaultState(), ...part });
    plane.showMap(map);
  });
  root.classList.add("explorer");
  root.replaceChildren(
    ...(tour ? [tour.element] : []),
    html("div", { class: "tabs", role: "tablist", "aria-label": "scene" }, ...tabs),
    html("div", { class: "stage" }, html("div", { class: "scene" }, ...Object.values(parts)), side, controls),
    files.element,
  );
  change({});
  return {
    state: () => state, set: change, look: () => look,
    watch: (seen) => { watchers.push(seen); },
    frames(wanted) {
      for (const own of histories) runTo(own, Math.min(wanted, LAST_STEP), Infinity);
      return histories.map((own) => frameAt(own, wanted));
    },
  };

  /** Data follow from the sentences in their scene; a start of another width begins at zero. */
  function withData(/** @type {State} */ next, /** @type {Partial<State>} */ part) {
    if (next.scene === "sentences" && (part.sentences || part.scene || !next.sentences.length)) {
      if (!next.sentences.length) next.sentences = SENTENCES_DEFAULT;
      Object.assign(next, sentencesData(next.sentences));
    }
    const d = next.data.v.length;
    if (next.start.length !== d * d) next.start = new Array(d * d).fill(0);
    next.settings = quickSettings(next.data, next.settings);
    if (next.second) next.second = quickSettings(next.data, next.second);
    next.focus = Math.min(next.focus, next.data.X.length - 1);
    return next;
  }
  /** Whether a change leaves the runs as they are. */
  function onlyView(/** @type {Partial<State>} */ part) {
    return Object.keys(part).every((key) => key === "focus" || key === "graph" || (key === "scene" && part.scene !== "sentences"));
  }
}
