// What is known of a state at once: scores, the end of the run, its direction, margin and rivals.
/** @import { Data, Selection } from "./types.js" */
/** @import { Settings, State } from "./state.js" */
/** @import { Demand, Solution } from "./frobenius.js" */
/** @import { LocalSelection } from "./selections.js" */
/** @import { Ending } from "./prediction.js" */
import { contradiction } from "./frobenius.js";
import { impliedNorm } from "./guarantee.js";
import { solveNorm, solveRowsIn } from "./norms.js";
import { predictRun } from "./prediction.js";
import { optimalTokens, scores, tokenRows } from "./rows.js";
import { localSelections } from "./selections.js";

const SEARCH = 600;

/**
 * `shown` is the selection whose direction is drawn: what the run ends in, or what a person asks for.
 * @typedef {object} Look
 * @property {number[][]} scores
 * @property {Selection} best
 * @property {Ending[]} endings  of the run, and of the second one if there is one
 * @property {Selection} shown
 * @property {Solution} solution
 * @property {boolean[][]} support
 * @property {Demand[]} demands  of a contradiction
 * @property {LocalSelection[]} locals
 * @property {boolean} complete
 */

/**
 * What training starts from.
 * @param {State} state
 * @param {Settings} settings
 */
export function runSettings(state, settings) {
  const start = Float64Array.from(state.start);
  if (settings.parameter === "KQ" && start.every((x) => x === 0)) {
    const d = state.data.v.length;
    for (let k = 0; k < d; k++) start[k * d + k] = 1e-3;
  }
  return { ...settings, start };
}

/**
 * Steps of the search for stable selections that take about 10 µs per step of the run's budget.
 * @param {Data} data
 * @param {number} budget
 */
function workFor({ X, v }, budget) {
  const rows = X.reduce((sum, tokens) => sum + tokens.length, 0);
  return Math.ceil((budget * SEARCH) / (rows * v.length ** 2));
}

/**
 * Look at a state.
 * @param {State} state
 * @param {Selection | null} asked a selection to show instead of what the run ends in
 * @param {number} budget steps to follow the run
 * @returns {Look}
 */
export function lookAt(state, asked, budget) {
  const { data } = state;
  const kinds = state.second ? [state.settings, state.second] : [state.settings];
  const endings = kinds.map((own) => predictRun(data, runSettings(state, own), budget, solveNorm));
  const shown = asked ?? endings[0].selection;
  const rows = tokenRows(data, shown, false);
  const solution = solveRowsIn(impliedNorm(state.settings), rows, data.z);
  const support = data.X.map((tokens) => tokens.map(() => false));
  solution.support.forEach((holds, m) => {
    if (holds) support[rows.sequence[m]][rows.other[m]] = true;
  });
  const { selections, complete } = localSelections(data, workFor(data, budget));
  return {
    scores: scores(data), best: optimalTokens(data), endings, shown, solution, support,
    demands: solution.status === "infeasible" ? contradiction(rows, solution.dual) : [],
    locals: selections, complete,
  };
}
