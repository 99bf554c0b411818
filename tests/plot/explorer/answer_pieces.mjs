// Answers of the explorer's files, links, words and graphs: a line of standard input is a JSON list
// of questions, and is answered by a line.

import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(process.argv[2] + "/");
const load = (name) => import(new URL(name, folder));
const { dataFromArrays, dataToArrays } = await load("arrays.js");
const { lexKnown, lexVector, lexWords } = await load("lexicon.js");
const { decodeState, encodeState } = await load("link.js");
const { graphSentence } = await load("nextgraph.js");
const { readNpz, writeNpz } = await load("npz.js");
const { pythonText } = await load("python.js");
const sentences = await load("sentences.js");
const { tokenGraphs, tokenNext, tokenParse } = await load("tokengraph.js");

const answers = {
  arrays: ({ path }) => readNpz(readFileSync(path)),
  read: async ({ path }) => dataFromArrays(await readNpz(readFileSync(path))),
  data: ({ arrays }) => dataFromArrays(arrays),
  write: ({ path, data, words }) => writeFileSync(path, writeNpz(dataToArrays(data, words))),
  writeArrays: ({ path, arrays }) => writeFileSync(path, writeNpz(arrays)),
  python: ({ data, settings, start }) => pythonText(data, settings, start),
  link: ({ state }) => {
    const text = encodeState(state);
    return { text, state: decodeState(text) };
  },
  // The text is changed by code, so that damage of all kinds can be made here.
  decode: ({ texts }) => texts.map(decodeState),
  record: ({ records }) => records.map((record) =>
    decodeState(`1.${Buffer.from(JSON.stringify(record)).toString("base64url")}`)),
  lexicon: () => Object.fromEntries(lexWords().map((word) => [word, lexVector(word)])),
  vectors: ({ words }) => words.map((word) => ({ known: lexKnown(word), vector: lexVector(word) })),
  defaults: () => sentences.SENTENCES_DEFAULT,
  sentences: ({ sentences: given }) => sentences.sentencesData(given),
  edited: ({ sentence, text }) => sentences.sentencesEdited(sentence, text),
  graph: ({ text, contexts }) => {
    const { samples, problems } = tokenParse(text), graphs = tokenGraphs(samples);
    const next = contexts.map((context) => tokenNext(graphs, context));
    const words = next.map((answer, k) => graphSentence(answer, contexts[k].at(-1)));
    return { samples, problems, graphs, next, words };
  },
};

async function answer([name, question]) {
  try {
    return { answer: (await answers[name](question)) ?? null };
  } catch (error) {
    return { error: error.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const found = [];
  for (const question of JSON.parse(line)) found.push(await answer(question));
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
