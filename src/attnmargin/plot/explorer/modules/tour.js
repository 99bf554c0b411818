// The guided tour: six states, each with a sentence and something to try.
/** @import { State } from "./state.js" */
import { button, html } from "./dom.js";
import { TOUR_STEPS } from "./steps.js";

/**
 * @typedef {{title: string, text: string, task: string, map?: boolean, state: Partial<State>}} TourStep
 */

/**
 * @param {(part: Partial<State>, map: boolean) => void} go called with the state of a step
 * @returns {{element: HTMLElement}}
 */
export function makeTour(go) {
  let at = -1;
  const words = html("p", { class: "tour-text", "aria-live": "polite" });
  const chips = TOUR_STEPS.map((own, k) => button(`${k + 1} ${own.title}`, () => show(k), { class: "chip" }));
  const next = button("next →", () => show((at + 1) % TOUR_STEPS.length), { class: "next" });
  const show = (/** @type {number} */ k) => {
    at = k;
    chips.forEach((chip, own) => {
      if (own === k) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
    });
    const own = TOUR_STEPS[k];
    words.replaceChildren(`${own.text} `, html("em", {}, `Try: ${own.task}`));
    go(own.state, own.map === true);
  };
  words.textContent = "Six short steps tell what attention learns, and why.";
  return { element: html("section", { class: "tour", "aria-label": "guided tour" },
    html("div", { class: "chips" }, ...chips, next), words) };
}
