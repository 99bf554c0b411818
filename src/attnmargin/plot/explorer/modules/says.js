// What is said of a state, in sentences.
/** @import { Settings, State } from "./state.js" */
/** @import { Look } from "./look.js" */
/** @import { Ending } from "./prediction.js" */
/** @import { Selection } from "./types.js" */
import { attentionAt, readTokens } from "./softmax.js";
import { sequenceName, tokenName } from "./state.js";

// A token with less attention at the end of a run shares it with others.
const MIXED = 0.97, MOST_LISTED = 12;

/** The name of a method. @param {Settings} settings */
export function methodName(settings) {
  const pace = settings.normalize ? "" : " with plain steps";
  if (settings.parameter === "KQ") return `gradient descent on K and Q${pace}`;
  if (settings.method === "mirror") return `ℓp mirror descent, p = ${settings.p}${pace}`;
  if (settings.method === "steepest") {
    return `${settings.norm === "max" ? "sign descent" : "spectral descent"}${pace}`;
  }
  return `gradient descent${pace}`;
}

/**
 * The selected tokens in words: “A1 and B3”.
 * @param {State} state
 * @param {Selection} selection
 */
export function selectionWords(state, selection) {
  const names = selection.map((t, i) => (state.words ? `“${tokenName(state, i, t)}”` : tokenName(state, i, t)));
  return listed(names);
}

/** @param {string[]} names */
export function listed(names) {
  if (names.length > MOST_LISTED) names = [...names.slice(0, MOST_LISTED - 1), `${names.length - MOST_LISTED + 1} more`];
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

/**
 * What the run will do, in one sentence, and how sure that is, in another.
 * @param {State} state
 * @param {Ending} ending
 * @param {Settings} settings
 * @param {Look} look
 * @returns {{headline: string, why: string, kind: string}}
 */
export function verdictWords(state, ending, settings, look) {
  const run = methodName(settings);
  const tokens = selectionWords(state, ending.selection);
  const start = run[0].toUpperCase() + run.slice(1);
  const best = ending.selection.every((t, i) => t === look.best[i]);
  const note = best ? "" : ` (the best scores are ${selectionWords(state, look.best)})`;
  if (ending.verdict === "guaranteed") {
    return { kind: "guaranteed", headline: `${start} will select ${tokens}.`, why: "Guaranteed, from any start." };
  }
  if (ending.verdict === "guaranteed from this start") {
    const since = ending.since === 0 ? "from the start" : `from step ${ending.since.toLocaleString("en")} on`;
    return { kind: "guaranteed", headline: `${start} will select ${tokens}${note}.`, why: `Guaranteed from this start: certain ${since}.` };
  }
  if (ending.verdict === "conjectured") {
    return { kind: "conjectured", headline: `${start} should select ${tokens}${note}.`,
      why: "Conjectured: the run settled there; no theorem that this page checks proves it." };
  }
  if (settings.loss === "squared" && isMixed(state, ending)) {
    return { kind: "undecided", headline: `${start} mixes tokens: the head wants a value between theirs.`,
      why: "The weights stop growing, and no token gets all attention." };
  }
  return { kind: "undecided", headline: `${start} leans to ${tokens}, and may end elsewhere.`,
    why: `Undecided after ${ending.steps.toLocaleString("en")} steps.` };
}

/** Whether a run ends with shared attention. @param {State} state @param {Ending} ending */
function isMixed({ data }, ending) {
  const shares = attentionAt(readTokens(data), ending.W);
  return shares.some((row) => Math.max(...row) < MIXED);
}

/**
 * Margin and rivals of the direction that is drawn, or why there is none.
 * @param {State} state
 * @param {Look} look
 */
export function directionWords(state, look) {
  const names = selectionWords(state, look.shown);
  if (look.solution.status === "infeasible") return contradictionWords(state, look);
  const guards = look.support.flatMap((row, i) => row.flatMap((holds, t) => (holds ? [tokenName(state, i, t)] : [])));
  if (!guards.length) return `There is no other token than ${names} to choose.`;
  const margin = 1 / look.solution.value;
  return `No W of length one selects ${names} by more than ${margin.toPrecision(4)}, the margin; ` +
    `${listed(guards)} ${guards.length > 1 ? "hold" : "holds"} it there.`;
}

/** @param {State} state @param {Look} look */
function contradictionWords(state, look) {
  const parts = look.demands.slice(0, 4).map(({ sequence, token, other }) =>
    `${sequenceName(sequence)} wants ${tokenName(state, sequence, token)} over ${tokenName(state, sequence, other)}`);
  const more = look.demands.length > 4 ? `, and ${look.demands.length - 4} more` : "";
  return `No W selects ${selectionWords(state, look.shown)}: ${parts.join("; ")}${more}, which cancel each other.`;
}

/**
 * How many selections training could end in.
 * @param {Look} look
 */
export function localWords(look) {
  const count = look.locals.length;
  const some = look.complete ? "" : "at least ";
  if (count === 0) return look.complete ? "No selection is stable." : "There are too many selections to try all of them here.";
  if (count === 1) return `Only one selection is ${look.complete ? "" : "known to be "}stable.`;
  return `${some}${count} selections are stable: gradient descent that begins near one of them stays there.`
    .replace(/^./, (c) => c.toUpperCase());
}
