// Reads {tasks: [...]} from stdin and prints a list of answers. Argument: the folder of modules.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const [softmax, training, guarantee, prediction, starts, frobenius, rows] = await Promise.all(
  ["softmax", "training", "guarantee", "prediction", "starts", "frobenius", "rows"].map((name) =>
    import(new URL(`${name}.js`, folder))));

const solve = (data, selection) =>
  frobenius.solveRows(rows.tokenRows(data, selection), data.z);

const read = (settings) => {
  const { start } = settings;
  if (!start) return settings;
  const matrix = (x) => Float64Array.from(x.flat());
  const factors = !Array.isArray(start);
  return { ...settings, start: factors ? { K: matrix(start.K), Q: matrix(start.Q) } : matrix(start) };
};

const answers = {
  train({ data, settings, records }) {
    const run = training.startRun(data, read(settings));
    return records.map((step) => {
      training.advanceRun(run, step - run.step);
      return { W: [...run.W], ...training.measure(run) };
    });
  },
  attention: ({ data, W }) => softmax.attentionAt(softmax.readTokens(data), Float64Array.from(W.flat())),
  guarantee({ data, W, settings }) {
    const own = guarantee.buildCase(data, settings, solve);
    return guarantee.guaranteeAt(own, Float64Array.from(W.flat()), settings);
  },
  predict: ({ data, settings, budget }) =>
    prediction.predictRun(data, read(settings), budget, solve),
  map({ data, settings, E1, E2, a, b, budget, pieces }) {
    const plane = starts.startPlane(Float64Array.from(E1.flat()), Float64Array.from(E2.flat()), a, b);
    const map = starts.newStartMap(data, settings, plane, budget, solve);
    while (starts.growStartMap(map, pieces));
    return { end: [...map.end], level: [...map.level], selections: map.selections };
  },
};

const { tasks } = JSON.parse(readFileSync(0, "utf8"));
const plain = (key, value) => (Number.isFinite(value) || typeof value !== "number" ? value : String(value));
console.log(JSON.stringify(tasks.map((task) => answers[task.ask](task)), plain));
