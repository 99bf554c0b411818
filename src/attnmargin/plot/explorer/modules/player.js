// Play, pause, one step, the step slider and the speed.
import { button, html, sliderField } from "./dom.js";
import { LAST_STEP } from "./play.js";

const DECADES = Math.log10(LAST_STEP + 1);

/**
 * What the player asks for.
 * @typedef {object} Player
 * @property {HTMLElement} element
 * @property {(step: number) => void} update
 * @property {() => boolean} playing
 * @property {(on: boolean) => void} play
 * @property {(step: number, milliseconds: number) => number} next  the step to go to in the next frame
 */

/**
 * @param {(step: number) => void} seek called with a step that a person chooses
 * @param {() => void} wake called when play begins
 * @returns {Player}
 */
export function makePlayer(seek, wake) {
  let on = false, shown = 0, rest = 0;
  const toggle = button("▶ play", () => set(!on), { class: "play", "aria-pressed": "false" });
  const set = (/** @type {boolean} */ wanted) => {
    if (wanted && shown >= LAST_STEP) seek(0);
    on = wanted;
    rest = 0;
    toggle.textContent = on ? "❚❚ pause" : "▶ play";
    toggle.setAttribute("aria-pressed", String(on));
    if (on) wake();
  };
  const jump = (/** @type {number} */ step) => { set(false); seek(Math.max(0, Math.min(step, LAST_STEP))); };
  const back = button("↺", () => jump(0), { "aria-label": "back to the start", title: "back to the start" });
  const before = button("−1", () => jump(shown - 1), { "aria-label": "−1: one step back" });
  const after = button("+1", () => jump(shown + 1), { "aria-label": "+1: one step on" });
  const slider = sliderField("step", { min: 0, max: DECADES, step: 0.001 },
    (x) => Math.round(10 ** x - 1).toLocaleString("en"), (x) => jump(Math.round(10 ** x - 1)));
  slider.element.classList.add("wide");
  let pace = 1.5;
  const speed = sliderField("speed", { min: 0, max: 5, step: 0.25 },
    (x) => `${Number((10 ** x).toPrecision(1)).toLocaleString("en")} steps/s`, (x) => { pace = x; });
  speed.show(pace);
  const element = html("div", { class: "player", role: "group", "aria-label": "training" },
    html("div", { class: "buttons" }, back, before, toggle, after), slider.element, speed.element);
  return {
    element,
    update(step) {
      shown = step;
      slider.show(Math.log10(step + 1), step.toLocaleString("en"));
      if (on && step >= LAST_STEP) set(false);
    },
    playing: () => on,
    play: set,
    next(step, milliseconds) {
      rest += (10 ** pace * milliseconds) / 1000;
      const whole = Math.floor(rest);
      rest -= whole;
      return Math.min(step + whole, LAST_STEP);
    },
  };
}
