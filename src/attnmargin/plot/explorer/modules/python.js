// The page's data and settings as lines of Python.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./state.js").Settings} Settings */
/** @typedef {ArrayLike<number> | {K: ArrayLike<number>, Q: ArrayLike<number>} | null} Start */

/** Longest line. */
const WIDTH = 88;
/** Shortest decimals round-trip in both languages. @param {number} x */
function decimal(x) {
  const text = Object.is(x, -0) ? "-0" : String(x);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

/** @typedef {number | Nested[]} Nested */

/** A nested list, in one line if it fits behind a prefix, else one line per entry.
 * @param {Nested} value @param {string} indent @param {number} used @returns {string} */
function listText(value, indent, used) {
  if (typeof value === "number") return decimal(value);
  const flat = `[${value.map((x) => listText(x, "", -Infinity)).join(", ")}]`;
  if (used + flat.length < WIDTH) return flat;
  const deeper = `${indent}    `;
  if (typeof value[0] === "number") return `[\n${wrapped(/** @type {number[]} */ (value), deeper)}${indent}]`;
  const rows = value.map((x) => `${deeper}${listText(x, deeper, deeper.length)},\n`);
  return `[\n${rows.join("")}${indent}]`;
}

/** Numbers in lines as long as may be. @param {number[]} row @param {string} indent */
function wrapped(row, indent) {
  let text = "", line = indent;
  for (const x of row) {
    const part = `${decimal(x)},`;
    if (line.length + 1 + part.length > WIDTH && line !== indent) {
      text += `${line}\n`;
      line = indent;
    }
    line += line === indent ? part : ` ${part}`;
  }
  return `${text}${line}\n`;
}

/** A call, in one line if it fits, else one argument per line; values are Python or nested lists.
 * @param {string} head @param {[string, string | Nested][]} options */
function callText(head, options) {
  const parts = options.map(([name, value]) => {
    const prefix = name && `${name}=`;
    return prefix + (typeof value === "string" ? value : listText(value, "    ", 5 + prefix.length));
  });
  const flat = `${head}(${parts.join(", ")})`;
  if (flat.length <= WIDTH && !flat.includes("\n")) return flat;
  return `${head}(\n${parts.map((part) => `    ${part},\n`).join("")})`;
}

/** @param {ArrayLike<number>} flat @param {number} d */
function rowsOf(flat, d) {
  const columns = flat.length / d;
  return Array.from({ length: d }, (_, r) => Array.from(flat).slice(r * columns, (r + 1) * columns));
}

/** Options that differ from the defaults. @param {Settings} settings @returns {[string, string][]} */
function optionsOf(settings) {
  /** @type {[string, string][]} */
  const options = [];
  const { method, p } = settings;
  if (settings.parameter === "KQ") options.push(["parameter", '"KQ"']);
  if (method === "steepest") options.push(["method", '"steepest"'], ["norm", `"${settings.norm}"`]);
  if (method === "mirror" && p !== 2) options.push(["p", decimal(p)]);
  if (settings.lr !== 0.1) options.push(["lr", decimal(settings.lr)]);
  if (!settings.normalize) options.push(["normalize", "False"]);
  if (settings.loss !== "logistic") options.push(["loss", `"${settings.loss}"`]);
  return options;
}

/** The start, and lines that must come before the call.
 * @param {Settings} settings @param {Start} start @param {number} d @returns {{before: string, init: [string, string | Nested][]}} */
function startOf(settings, start, d) {
  const nothing = { before: "", init: /** @type {[string, string | Nested][]} */ ([]) };
  if (!start) return nothing;
  if ("K" in start) {
    const [K, Q] = [start.K, start.Q].map((x) => listText(rowsOf(x, d), "", 4));
    return { before: `K = ${K}\nQ = ${Q}\n`, init: [["init", "(K, Q)"]] };
  }
  const W = rowsOf(start, d);
  if (settings.parameter === "KQ") return { before: factorText(W), init: [["init", "(K, Q)"]] };
  return Array.from(start).some((x) => x !== 0) ? { before: "", init: [["init", W]] } : nothing;
}

/** Factors of W(0) that are balanced, KᵀK = QᵀQ: those that the page trains. @param {number[][]} W */
function factorText(W) {
  const tensor = `W = torch.tensor(${listText(W, "", 18)}, dtype=torch.float64)`;
  return `${tensor}\nU, s, Vt = torch.linalg.svd(W)\nK, Q = U * s.sqrt(), Vt.T * s.sqrt()\n`;
}

/** Lines that build the same data and call `am.predict` with what differs from its defaults.
 * `start` is W(0), row by row, or its factors.
 * @param {Data} data @param {Settings} settings @param {Start} start @returns {string} */
export function pythonText(data, settings, start) {
  const { before, init } = startOf(settings, start, data.v.length), options = [...optionsOf(settings), ...init];
  const own = callText("data = am.AttentionData", [["X", data.X], ["z", data.z], ["y", data.y], ["v", data.v]]);
  const call = `${callText("prediction = am.predict", [["", "data"], ...options])}\nprint(prediction)\n`;
  return `${before.includes("torch") ? "import torch\n" : ""}import attnmargin as am\n\n${own}\n${before}${call}`;
}
