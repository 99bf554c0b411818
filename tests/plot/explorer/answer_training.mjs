// Reads a list of tasks from stdin and prints their answers. Argument: the folder of modules.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const load = (name) => import(new URL(`${name}.js`, folder));
const { attentionAt, readTokens } = await load("softmax");
const { advanceRun, measure, startRun } = await load("training");
const {
  SETTLED_SHARE, buildCase, caseLogits, frameOf, givenTokens, isProvable, likeliest, provedAt,
} = await load("guarantee");
const { findFunnel } = await load("funnel");
const { predictRun } = await load("prediction");
const { growStartMap, newStartMap } = await load("starts");
const { solveNorm } = await load("norms");

const matrix = (x) => Float64Array.from(x.flat());

// Settings whose start is a matrix or a pair of matrices.
const read = (settings) => {
  const { start } = settings;
  if (!start) return settings;
  const given = Array.isArray(start) ? matrix(start) : { K: matrix(start.K), Q: matrix(start.Q) };
  return { ...settings, start: given };
};

// What is proved at W, for the steps of `settings` from there on.
const guaranteeAt = (own, W, settings) => {
  const { lr = 0.1, normalize = true } = settings;
  const a = caseLogits(own, W);
  const { selection, share } = likeliest(own, a);
  const found = isProvable(settings) ? provedAt(own, a, W, lr, !normalize) : null;
  const level = "guaranteed from this start";
  if (found?.theorem === "A") {
    const { longest, gradient } = found.level;
    const [chosen, least] = [givenTokens(own, own.best), found.level.share];
    return { level, selection: chosen, theorem: "A", longest, rate: longest / gradient, share: least };
  }
  const chosen = givenTokens(own, selection);
  if (found?.theorem === "B") {
    const funnel = findFunnel(frameOf(own, selection), W, found.step, true);
    const rate = found.step * Math.exp(-funnel.logGradient);
    return { level, selection: chosen, theorem: "B", longest: funnel.longest, rate, share: funnel.share };
  }
  const settled = share >= SETTLED_SHARE ? "settled" : "open";
  return { level: settled, selection: chosen, theorem: "", longest: 0, rate: 0, share };
};

// The plane of starts a E₁ + b E₂, row by row.
const startPlane = (E1, E2, a, b) =>
  b.flatMap((y) => a.map((x) => E1.map((value, j) => x * value + y * E2[j])));

const answers = {
  train({ data, settings, records }) {
    const run = startRun(data, read(settings));
    return records.map((step) => {
      advanceRun(run, step - run.step);
      return { W: [...run.W], ...measure(run) };
    });
  },
  attention: ({ data, W }) => attentionAt(readTokens(data), matrix(W)),
  guarantee: ({ data, W, settings }) =>
    guaranteeAt(buildCase(data, settings, solveNorm), matrix(W), settings),
  predict({ data, settings, budget }) {
    const found = predictRun(data, read(settings), budget, solveNorm);
    return { ...found, W: [...found.W] };
  },
  map({ data, settings, E1, E2, a, b, budget, piece }) {
    const plane = startPlane(matrix(E1), matrix(E2), a, b);
    const map = newStartMap(data, settings, plane, budget, solveNorm);
    while (growStartMap(map, piece));
    return { end: [...map.end], level: [...map.level], selections: map.selections };
  },
};

const tasks = JSON.parse(readFileSync(0, "utf8"));
// JSON has no infinity: such numbers become words, which Python's float() reads.
const plain = (_, value) => (Number.isFinite(value) || typeof value !== "number" ? value : String(value));
console.log(JSON.stringify(tasks.map((task) => answers[task.ask](task)), plain));
