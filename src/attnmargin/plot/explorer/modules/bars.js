// Attention as bars: one row of tokens per sequence.
/** @import { State } from "./state.js" */
/** @import { Look } from "./look.js" */
/** @import { Frame } from "./play.js" */
import { html } from "./dom.js";
import { sequenceName, tokenName } from "./state.js";

/**
 * @param {(i: number) => void} focus called with the sequence that a person chooses
 * @param {(i: number) => void} flip called with the sequence whose label changes
 * @returns {{element: HTMLElement, update: (state: State, look: Look, frames: Frame[]) => void}}
 */
export function makeBars(focus, flip) {
  const element = html("div", { class: "bars" });
  element.addEventListener("click", (event) => {
    const target = /** @type {HTMLElement} */ (event.target).closest("[data-focus], [data-flip]");
    if (!(target instanceof HTMLElement)) return;
    if (target.dataset.flip !== undefined) flip(Number(target.dataset.flip));
    else focus(Number(target.dataset.focus));
  });
  let shape = "";
  return {
    element,
    update(state, look, frames) {
      const own = JSON.stringify([state.data.X.map((x) => x.length), state.words, frames.length]);
      if (own !== shape) {
        shape = own;
        element.replaceChildren(...state.data.X.map((_, i) => sequenceRow(state, i, frames.length)));
      }
      state.data.X.forEach((tokens, i) => updateRow(element.children[i], i, state, look, frames));
    },
  };
}

/** @param {State} state @param {number} i @param {number} runs */
function sequenceRow(state, i, runs) {
  const name = html("button", { type: "button", class: "sequence", "data-focus": i }, `${sequenceName(i)}`);
  const label = html("button", { type: "button", class: "label", "data-flip": i });
  const cells = state.data.X[i].map((_, t) =>
    html("div", { class: "cell" }, html("div", { class: "column" },
      ...Array.from({ length: runs }, (_, r) => html("div", { class: `bar run${r}` }))),
    html("span", { class: "name" }, tokenName(state, i, t))));
  return html("div", { class: `row s${i % 8}` }, html("div", { class: "who" }, name, label), ...cells);
}

/** @param {Element} row @param {number} i @param {State} state @param {Look} look @param {Frame[]} frames */
function updateRow(row, i, state, look, frames) {
  row.classList.toggle("focus", i === state.focus);
  const [name, label] = row.children[0].children;
  name.setAttribute("aria-pressed", String(i === state.focus));
  name.setAttribute("aria-label", `look at sequence ${sequenceName(i)}`);
  label.textContent = state.data.y[i] > 0 ? "+1" : "−1";
  label.setAttribute("aria-label", `label of sequence ${sequenceName(i)}: ${label.textContent}; press to flip`);
  state.data.X[i].forEach((_, t) => {
    const cell = row.children[t + 1];
    cell.className = `cell${look.shown[i] === t ? " wins" : look.support[i][t] ? " guards" : ""}`;
    frames.forEach((frame, r) => {
      const bar = /** @type {HTMLElement} */ (cell.children[0].children[r]);
      bar.style.height = `${(100 * frame.attention[i][t]).toFixed(1)}%`;
    });
    cell.setAttribute("title", `${tokenName(state, i, t)}: attention ` +
      frames.map((frame) => frame.attention[i][t].toPrecision(3)).join(" and ") +
      `, score ${look.scores[i][t].toFixed(3)}`);
  });
}
