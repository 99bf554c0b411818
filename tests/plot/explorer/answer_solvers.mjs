// Answers of the explorer's solvers: states come as JSON from standard input.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(process.argv[2] + "/");
const load = (name) => import(new URL(name, folder));
const { optimalTokens, scores, tokenRows } = await load("rows.js");
const { certify } = await load("certificate.js");
const { contradiction, solveRows } = await load("frobenius.js");
const { localSelections } = await load("selections.js");
const { solveNorm } = await load("norms.js");

const lists = (solution) => ({ ...solution, W: [...solution.W], dual: [...solution.dual] });

function answer({ data, selection, norms, local }) {
  const rows = tokenRows(data, selection);
  const solution = solveRows(rows, data.z);
  const solveIn = (norm) => {
    const found = solveNorm(data, selection, norm);
    const rough = found.W.map((x, k) => (k === 0 ? 0.9 * x : 0.5 * x));
    return { ...lists(found), certificate: certify(rows, data.z, norm, rough, found.dual) };
  };
  return {
    scores: scores(data),
    best: optimalTokens(data),
    solution: lists(solution),
    demands: contradiction(rows, solution.dual),
    norms: norms.map(solveIn),
    local: local ? localSelections(data) : null,
    cut: localSelections(data, 0).complete,
  };
}

const states = JSON.parse(readFileSync(0, "utf8"));
// JSON has no infinity: such numbers become words, which Python's float() reads.
const plain = (_, value) => (Number.isFinite(value) || typeof value !== "number" ? value : String(value));
process.stdout.write(JSON.stringify(states.map(answer), plain));
