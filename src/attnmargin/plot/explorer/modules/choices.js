// The stable selections as buttons: press one to see its direction and margin.
/** @import { State } from "./state.js" */
/** @import { Look } from "./look.js" */
/** @import { Selection } from "./types.js" */
import { html } from "./dom.js";
import { localWords, selectionWords } from "./says.js";

const MOST_SHOWN = 12;

/**
 * @param {(selection: Selection | null) => void} ask called with a selection to show, or null for the run's own
 * @returns {{element: HTMLElement, update: (state: State, look: Look, asked: Selection | null) => void}}
 */
export function makeChoices(ask) {
  const words = html("p", {});
  const list = html("div", { class: "chips", role: "group", "aria-label": "stable selections" });
  const element = html("section", { class: "choices" }, html("h2", {}, "What training can end in"), words, list);
  /** @type {Selection[]} */
  let known = [];
  let pressed = "";
  list.addEventListener("click", (event) => {
    const chip = event.target instanceof Element ? event.target.closest("button") : null;
    if (!chip) return;
    const own = known[Number(chip.dataset.k)];
    ask(String(own) === pressed ? null : own);
  });
  return {
    element,
    update(state, look, asked) {
      words.textContent = (state.settings.loss === "squared" ? "For the other losses: " : "") + localWords(look);
      const shown = look.locals.slice(0, MOST_SHOWN);
      known = shown.map((own) => own.selection);
      pressed = String(asked);
      while (list.children.length > shown.length) list.lastChild?.remove();
      while (list.children.length < shown.length) list.append(html("button", { type: "button", class: "chip" }));
      shown.forEach((own, k) => {
        const chip = /** @type {HTMLElement} */ (list.children[k]);
        chip.dataset.k = String(k);
        chip.textContent = `${selectionWords(state, own.selection)} · ${own.margin.toPrecision(3)}`;
        chip.setAttribute("aria-pressed", String(String(own.selection) === pressed));
        chip.classList.toggle("end", String(own.selection) === String(look.endings[0].selection));
      });
    },
  };
}
