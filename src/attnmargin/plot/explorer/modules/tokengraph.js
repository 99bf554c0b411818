// Token-priority graphs of paper C: an edge from the chosen token to every other token of its
// context, one graph per last token; and what comes next after long training (Theorem 3).

/** @typedef {{tokens: string[], next: string}} TokenSample */
/**
 * `edges` are pairs of indices of `tokens`; components are numbered from the top down, `layer` is
 * the longest path down to one; `covers` are edges between components that no longer path implies.
 * @typedef {{last: string, tokens: string[], edges: number[][], component: number[],
 *   components: number[][], layer: number[], covers: number[][], reach: boolean[][],
 *   samples: TokenSample[]}} TokenGraph
 */
/** @typedef {{rule: string, tokens: [string, number][], beaten: string[], strange: string[]}} TokenNext */

const LINES = 100, LONGEST = 24;
/** Margins that differ by less tie. */
const LEVEL = 1e-6;

/** Split at blanks. @param {string} text */
export function tokenSplit(text) {
  return text.split(/\s+/).filter(Boolean);
}

/** What is wrong with a line, or nothing. @param {string} line @param {TokenSample} sample */
function wrongWith(line, { tokens, next }) {
  const parts = line.split(/->|→/);
  if (parts.length !== 2) return "needs one arrow, as in “a b c -> b”";
  if (!tokens.length) return "has no token before the arrow";
  if (tokenSplit(parts[1]).length !== 1) return "needs one token behind the arrow";
  if (tokens.length > LONGEST) return `has more than ${LONGEST} tokens`;
  return tokens.includes(next) ? "" : `chooses “${next}”, which is not among its tokens`;
}

/** Read lines such as `a b c -> b`; bad lines are left out, each with a sentence.
 * @param {string} text @returns {{samples: TokenSample[], problems: string[]}} */
export function tokenParse(text) {
  const samples = [], problems = [];
  for (const [k, line] of text.split("\n").entries()) {
    if (!line.trim()) continue;
    const [left, right = ""] = line.split(/->|→/), sample = { tokens: tokenSplit(left), next: right.trim() };
    const wrong = samples.length < LINES ? wrongWith(line, sample) : `is beyond the first ${LINES}`;
    if (wrong) problems.push(`Line ${k + 1} ${wrong}.`);
    else samples.push(sample);
  }
  return { samples, problems };
}

/** All tokens, in order of appearance. @param {TokenSample[]} samples */
function vocabularyOf(samples) {
  return [...new Set(samples.flatMap((sample) => sample.tokens))];
}

/** The graphs, one per last token. @param {TokenSample[]} samples @returns {TokenGraph[]} */
export function tokenGraphs(samples) {
  const last = (/** @type {TokenSample} */ sample) => sample.tokens[sample.tokens.length - 1];
  return vocabularyOf(samples).map((name) => samples.filter((sample) => last(sample) === name))
    .filter((own) => own.length).map((own) => graphOf(last(own[0]), own, vocabularyOf(samples)));
}

/** @param {string} last @param {TokenSample[]} samples @param {string[]} vocabulary @returns {TokenGraph} */
function graphOf(last, samples, vocabulary) {
  const present = new Set(vocabularyOf(samples)), tokens = vocabulary.filter((name) => present.has(name));
  const follow = tokens.map(() => /** @type {Set<number>} */ (new Set()));
  for (const sample of samples) {
    const from = tokens.indexOf(sample.next);
    for (const name of sample.tokens) if (name !== sample.next) follow[from].add(tokens.indexOf(name));
  }
  const edges = follow.flatMap((targets, from) => [...targets].sort((a, b) => a - b).map((to) => [from, to]));
  return { last, tokens, edges, samples, ...componentsOf(follow) };
}

/** Strongly connected components by Tarjan's method; a component comes after those that it leads to.
 * @param {Set<number>[]} follow */
function tarjan(follow) {
  const index = new Array(follow.length).fill(-1), low = [...index], done = [...index];
  /** @type {number[]} */
  const stack = [];
  let seen = 0, found = 0;
  const visit = (/** @type {number} */ a) => {
    index[a] = low[a] = seen++;
    stack.push(a);
    for (const b of follow[a]) {
      if (index[b] < 0) visit(b);
      if (done[b] < 0) low[a] = Math.min(low[a], low[b]);
    }
    if (low[a] < index[a]) return;
    for (let b = -1; b !== a;) done[b = /** @type {number} */ (stack.pop())] = found;
    found++;
  };
  for (let a = 0; a < follow.length; a++) if (index[a] < 0) visit(a);
  return { label: done, count: found };
}

/** Components from the top down, with layers and what dominates what. @param {Set<number>[]} follow */
function componentsOf(follow) {
  const { label, count } = tarjan(follow), layers = new Array(count).fill(0);
  const first = Array.from({ length: count }, (_, c) => label.indexOf(c));
  // The longest path to a component, from those that lead to it: sources have the last labels.
  for (let c = count - 1; c >= 0; c--) {
    label.forEach((own, a) => own === c && follow[a].forEach((b) => {
      if (label[b] !== c) layers[label[b]] = Math.max(layers[label[b]], layers[c] + 1);
    }));
  }
  const order = first.map((_, c) => c).sort((a, b) => layers[a] - layers[b] || first[a] - first[b]);
  const component = label.map((c) => order.indexOf(c));
  const components = order.map((_, c) => component.flatMap((own, a) => (own === c ? [a] : [])));
  const next = components.map((part, c) =>
    [...new Set(part.flatMap((a) => [...follow[a]].map((b) => component[b])))].filter((e) => e !== c));
  const reach = order.map(() => new Array(count).fill(false));
  for (let c = count - 1; c >= 0; c--) {
    for (const e of next[c]) reach[e].forEach((under, k) => { reach[c][k] ||= under || k === e; });
  }
  const covers = next.flatMap((targets, c) => targets.filter((e) => !targets.some((m) => reach[m][e])).map((e) => [c, e]));
  return { component, components, layer: order.map((c) => layers[c]), reach, covers };
}

/** Logits of W_mm for orthonormal embeddings, by component: min Σ |c| w_c² with w_c − w_e ≥ 1 for
 * every edge c → e, by ascent in one multiplier at a time. @param {TokenGraph} graph */
function marginsOf({ components, covers }) {
  const w = components.map(() => 0), dual = covers.map(() => 0);
  for (let round = 0, moved = 1; moved > 1e-12 && round < 20_000; round++) {
    moved = 0;
    covers.forEach(([a, b], k) => {
      const pull = [1 / components[a].length, 1 / components[b].length];
      const step = Math.max((1 - w[a] + w[b]) / (pull[0] + pull[1]), -dual[k]);
      dual[k] += step;
      w[a] += step * pull[0];
      w[b] -= step * pull[1];
      moved = Math.max(moved, Math.abs(step));
    });
  }
  return w;
}

/** Shares that the tokens of a component have learnt: the likeliest weights s_j, where a token that
 * occurs c_j times is chosen with probability c_j s_j / Σ c s. @param {TokenGraph} graph @param {number} part */
function sharesOf(graph, part) {
  const names = graph.components[part].map((a) => graph.tokens[a]);
  if (names.length === 1) return [1];
  const rows = graph.samples.filter((sample) => names.includes(sample.next))
    .map((sample) => ({ next: sample.next, counts: names.map((name) => sample.tokens.filter((t) => t === name).length) }))
    .filter(({ counts }) => counts.filter(Boolean).length > 1);
  let s = names.map(() => 1);
  const wins = names.map((name) => rows.filter((row) => row.next === name).length);
  for (let round = 0, moved = 1; moved > 1e-13 && round < 20_000; round++) {
    const totals = rows.map(({ counts }) => counts.reduce((sum, c, j) => sum + c * s[j], 0));
    const fresh = wins.map((won, j) => won / rows.reduce((sum, { counts }, r) => sum + counts[j] / totals[r], 0));
    const scale = names.length / fresh.reduce((a, b) => a + b, 0);
    moved = Math.max(...fresh.map((x, j) => Math.abs(Math.log(x * scale / s[j]))));
    s = fresh.map((x) => x * scale);
  }
  return s;
}

/** The component that dominates all others of a context, or −1. @param {TokenGraph} graph @param {number[]} parts */
function dominant(graph, parts) {
  if (parts.includes(-1)) return -1;
  const top = parts.reduce((a, b) => (graph.layer[b] < graph.layer[a] ? b : a));
  return parts.every((part) => part === top || graph.reach[top][part]) ? top : -1;
}

/** What comes next after a context: the rule of the automaton that attention learns.
 * @param {TokenGraph[]} graphs @param {string[]} context @returns {TokenNext} */
export function tokenNext(graphs, context) {
  const graph = graphs.find(({ last }) => last === context[context.length - 1]), names = [...new Set(context)];
  const places = names.map((name) => (graph ? graph.tokens.indexOf(name) : -1));
  const parts = places.map((a) => (graph && a >= 0 ? graph.component[a] : -1));
  const strange = names.filter((_, i) => parts[i] < 0);
  if (names.length === 1) return { rule: "retrieval", tokens: [[names[0], 1]], beaten: [], strange };
  if (!graph) return { rule: "unseen", tokens: [], beaten: [], strange };
  const top = dominant(graph, parts), w = marginsOf(graph);
  const hard = parts.map((part) => (part < 0 ? 0 : w[part])), most = Math.max(...hard);
  const best = names.map((_, i) => (top >= 0 ? parts[i] === top : hard[i] >= most - LEVEL));
  const winners = new Set(parts.filter((_, i) => best[i])), [part] = winners;
  const together = winners.size === 1 && part >= 0, count = best.filter(Boolean).length;
  const rule = top >= 0 ? (count > 1 ? "composition" : "retrieval") : together || count === 1 ? "margin" : "tie";
  const shares = together ? sharesOf(graph, part) : [];
  const weight = names.map((name, i) => !best[i] ? 0
    : context.filter((t) => t === name).length * (together ? shares[graph.components[part].indexOf(places[i])] : 1));
  const total = weight.reduce((a, b) => a + b, 0);
  /** @type {[string, number][]} */
  const tokens = names.flatMap((name, i) => (best[i] ? [[name, weight[i] / total]] : []));
  return { rule, tokens: tokens.sort((a, b) => b[1] - a[1]), beaten: names.filter((_, i) => !best[i]), strange };
}
