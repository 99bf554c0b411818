// Answers of the explorer's solvers: states come as JSON from standard input.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(process.argv[2] + "/");
const load = (name) => import(new URL(name, folder));
const { optimalTokens, scores, tokenRows } = await load("rows.js");
const { contradiction, solveRows } = await load("frobenius.js");
const { localSelections } = await load("selections.js");

function answer({ data, selection }) {
  const rows = tokenRows(data, selection);
  const solution = solveRows(rows, data.z);
  const solved = { ...solution, W: [...solution.W], dual: [...solution.dual] };
  return {
    scores: scores(data),
    best: optimalTokens(data),
    solution: solved,
    demands: contradiction(rows, solution.dual),
    local: localSelections(data),
  };
}

const states = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(states.map(answer)));
