// Reads a list of tasks from stdin and prints their answers. Argument: the folder of modules.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const load = (name) => import(new URL(`${name}.js`, folder));
const { attentionAt, readTokens } = await load("softmax");
const { advanceRun, measure, startRun } = await load("training");
const { buildCase, guaranteeAt } = await load("guarantee");
const { predictRun } = await load("prediction");
const { growStartMap, newStartMap, startPlane } = await load("starts");
const { solveNorm } = await load("norms");

const matrix = (x) => Float64Array.from(x.flat());

// Settings whose start is a matrix or a pair of matrices.
const read = (settings) => {
  const { start } = settings;
  if (!start) return settings;
  const given = Array.isArray(start) ? matrix(start) : { K: matrix(start.K), Q: matrix(start.Q) };
  return { ...settings, start: given };
};

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
