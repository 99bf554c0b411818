// The scene of token-priority graphs: contexts and next tokens in, graphs and answers out.

import { button, html, svg } from "./dom.js";
import { tokenGraphs, tokenNext, tokenParse, tokenSplit } from "./tokengraph.js";

/** @typedef {import("./tokengraph.js").TokenGraph} TokenGraph */
/** @typedef {import("./tokengraph.js").TokenNext} TokenNext */
/** @typedef {import("./tokengraph.js").TokenSample} TokenSample */
/** @typedef {{x: number, y: number, w: number, h: number}} Box  centre and half sizes */

/** What the text field holds at first. */
export const GRAPH_DEFAULT = [
  "tea coffee milk please -> tea",
  "coffee tea please -> coffee",
  "coffee tea milk please -> tea",
  "milk water please -> milk",
  "tea milk thanks -> milk",
  "milk water thanks -> water",
].join("\n");
const ROW = 74, GAP = 16, WIDEST = 420;

/** Half the width of the box of a token. @param {string} name */
function halfWidth(name) {
  return Math.max(16, 4.3 * Math.min(name.length, 14) + 9);
}

/** Places of tokens around the middle of their component. @param {TokenGraph} graph @param {number[]} part */
function partOf(graph, part) {
  const wide = Math.max(...part.map((a) => halfWidth(graph.tokens[a]))), alone = part.length === 1;
  const rx = alone ? 0 : Math.max(wide + 20, (part.length * wide) / 2.3), ry = alone ? 0 : Math.max(36, 14 * part.length);
  const angle = (/** @type {number} */ k) => 2 * Math.PI * (k / part.length) + (part.length === 2 ? 0 : -Math.PI / 2);
  const boxes = part.map((a, k) => ({ x: rx * Math.cos(angle(k)), y: ry * Math.sin(angle(k)), w: halfWidth(graph.tokens[a]), h: 14 }));
  return alone ? { boxes, w: wide, h: 14 } : { boxes, w: rx + wide + 12, h: (part.length === 2 ? 0 : ry) + 27 };
}

/** Components row by row, the first layer on top. @param {TokenGraph} graph */
function rowsOf(graph) {
  const rows = /** @type {number[][]} */ ([]);
  const parts = graph.components.map((part) => partOf(graph, part));
  for (let k = 0, width = 0; k < parts.length; k++) {
    const own = 2 * parts[k].w + GAP, fresh = k === 0 || graph.layer[k] !== graph.layer[k - 1] || width + own > WIDEST;
    width = fresh ? own : width + own;
    if (fresh) rows.push([k]);
    else rows[rows.length - 1].push(k);
  }
  return { rows, parts };
}

/** Where all tokens and components are drawn. @param {TokenGraph} graph */
function planOf(graph) {
  const { rows, parts } = rowsOf(graph), rings = /** @type {Box[]} */ ([]), boxes = /** @type {Box[]} */ ([]);
  const wide = rows.map((row) => row.reduce((sum, k) => sum + 2 * parts[k].w + GAP, -GAP));
  const width = Math.max(...wide) + 70;
  let y = 6;
  rows.forEach((row, r) => {
    const tall = Math.max(...row.map((k) => parts[k].h));
    // Lone tokens swing left and right, so that long arrows do not hide behind them.
    let x = (width - wide[r]) / 2 + (row.length === 1 ? (r % 2 ? 22 : -22) : 0);
    for (const k of row) {
      const middle = x + parts[k].w, { w, h } = parts[k];
      rings[k] = { x: middle, y: y + tall, w, h };
      parts[k].boxes.forEach((box, j) => { boxes[graph.components[k][j]] = { ...box, x: middle + box.x, y: y + tall + box.y }; });
      x += 2 * w + GAP;
    }
    y += 2 * tall + ROW - 28;
  });
  return { rings, boxes, width, height: y - ROW + 34 };
}

/** The point on the border of a box towards another point. @param {Box} box @param {Box} to */
function borderPoint(box, to) {
  const dx = to.x - box.x, dy = to.y - box.y, t = Math.min(box.w / Math.abs(dx || 1e-9), box.h / Math.abs(dy || 1e-9), 1);
  return [box.x + t * dx, box.y + t * dy];
}

/** An arrow between two boxes, moved aside for those that go both ways. @param {Box} a @param {Box} b @param {number} aside */
function arrow(a, b, aside) {
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1, u = [(b.x - a.x) / length, (b.y - a.y) / length];
  const shift = [-aside * u[1], aside * u[0]];
  const [from, to] = [borderPoint(a, b), borderPoint(b, a)].map(([x, y]) => [x + shift[0], y + shift[1]]);
  const base = [to[0] - 8 * u[0], to[1] - 8 * u[1]];
  const at = (/** @type {number[]} */ p, side = 0) => `${(p[0] - side * u[1]).toFixed(1)} ${(p[1] + side * u[0]).toFixed(1)}`;
  return [svg("path", { class: "edge", d: `M${at(from)}L${at(base)}` }),
    svg("path", { class: "tip", d: `M${at(to)}L${at(base, 4)}L${at(base, -4)}z` })];
}

/** @param {TokenGraph} graph @param {Set<string>} picked */
function drawing(graph, picked) {
  const { rings, boxes, width, height } = planOf(graph), label = layerWords(graph);
  const whole = svg("svg", { class: "tokengraph", viewBox: `0 0 ${width.toFixed(0)} ${height.toFixed(0)}`,
    width: width.toFixed(0), role: "img", "aria-label": label });
  rings.forEach(({ x, y, w, h }, k) => {
    if (graph.components[k].length > 1) whole.append(svg("rect", { class: "ring", x: x - w, y: y - h, width: 2 * w, height: 2 * h, rx: 18 }));
  });
  for (const [c, e] of graph.covers) whole.append(...arrow(rings[c], rings[e], 0));
  for (const [a, b] of graph.edges) {
    if (graph.component[a] !== graph.component[b]) continue;
    const back = graph.edges.some(([from, to]) => from === b && to === a);
    whole.append(...arrow(boxes[a], boxes[b], back ? 5 : 0));
  }
  boxes.forEach(({ x, y, w, h }, a) => {
    const name = graph.tokens[a], text = svg("text", { x, y: y + 5 }), title = svg("title");
    text.textContent = name.length > 14 ? `${name.slice(0, 13)}…` : name;
    title.textContent = name;
    whole.append(svg("g", { class: picked.has(name) ? "token picked" : "token" }, title,
      svg("rect", { x: x - w, y: y - h, width: 2 * w, height: 2 * h, rx: 8 }), text));
  });
  return whole;
}

/** Layers from the top down, components in braces. @param {TokenGraph} graph */
function layerWords(graph) {
  const names = graph.components.map((part) => part.map((a) => graph.tokens[a]).join(", ")).map((text, c) =>
    (graph.components[c].length > 1 ? `{${text}}` : text));
  const layers = Array.from({ length: Math.max(...graph.layer) + 1 }, (_, l) => {
    const own = names.filter((_, c) => graph.layer[c] === l), last = own[own.length - 1];
    return own.length > 1 ? `${own.slice(0, -1).join(", ")} and ${last}` : last;
  });
  return `After “${graph.last}”: ${layers.join(", then ")}`;
}

/** @param {string[]} names */
function quoted(names) {
  return names.map((name) => `“${name}”`).join(", ");
}

/** The answer and its rule in a sentence. @param {TokenNext} answer @param {string} last */
export function graphSentence({ rule, tokens, beaten, strange }, last) {
  const names = quoted(tokens.map(([name]) => name));
  const shares = tokens.map(([name, share]) => (tokens.length > 1 ? `“${name}” ${(100 * share).toFixed(0)} %` : `“${name}”`)).join(", ");
  const note = strange.length && rule !== "unseen" && beaten.length ? ` Never seen with “${last}”: ${quoted(strange)}.` : "";
  if (rule === "unseen") return `No line has “${last}” before its arrow: nothing was learnt about it.`;
  if (!beaten.length && tokens.length === 1) return `${names}: there is no other token.`;
  if (rule === "retrieval") return `${names}: it has priority over all the others, so attention retrieves it.`;
  if (rule === "composition") return `${shares}: one component, whose tokens share the attention${beaten.length ? "; it has priority over all the others" : ""}.`;
  if (rule === "margin") return `${shares}: the graph leaves the order open, and the max-margin direction decides.${note}`;
  return `${names}: neither the graph nor the max-margin direction tells them apart, and the theory makes no prediction.${note}`;
}

/** @param {string} label @param {HTMLElement} input @param {(text: string) => void} typed */
function field(label, input, typed) {
  const own = /** @type {HTMLInputElement | HTMLTextAreaElement} */ (input);
  own.addEventListener("input", () => typed(own.value));
  return { own, element: html("label", {}, html("span", {}, label), own) };
}

/** Write into a field, unless it says so already: the caret stays. @param {HTMLInputElement | HTMLTextAreaElement} own @param {string} text */
function write(own, text) {
  if (own.value !== text) own.value = text;
}

/** @param {TokenSample[]} samples @param {TokenGraph[]} graphs @param {string[]} context */
function answered(samples, graphs, context) {
  const known = new Set(samples.flatMap(({ tokens }) => tokens)), alien = context.find((name) => !known.has(name));
  const last = context[context.length - 1];
  if (alien !== undefined || !last) return { sentence: last ? `“${alien}” is in no line.` : "", last, picked: [] };
  const found = tokenNext(graphs, context);
  return { sentence: graphSentence(found, last), last, picked: found.tokens.map(([name]) => name) };
}

/** Show the graphs of a text; `change({graph})` is called after every edit of it.
 * @param {(part: {graph: string}) => void} change
 * @returns {{element: HTMLElement, update: (state: {graph: string}) => void}} */
export function graphScene(change) {
  /** @type {string | null} */
  let shown = null;
  /** What a person asks; until then, the first context. @type {string | null} */
  let question = null;
  const lines = field("Contexts, and the token that came next: the last token of a context asks",
    html("textarea", { rows: 7, spellcheck: "false" }), (graph) => { draw(graph); change({ graph }); });
  const ask = field("What comes next after …", html("input", { spellcheck: "false" }),
    (text) => { question = text; draw(shown ?? ""); });
  const problem = html("p", { class: "problem", role: "status" }), answer = html("p", { class: "answer", role: "status" });
  const pictures = html("div", { class: "drawings" });
  const example = button("example", () => { question = null; draw(GRAPH_DEFAULT); change({ graph: GRAPH_DEFAULT }); });
  const draw = (/** @type {string} */ text) => {
    const { samples, problems } = tokenParse(text), graphs = tokenGraphs(samples);
    shown = text;
    write(lines.own, text);
    write(ask.own, question ?? samples[0]?.tokens.join(" ") ?? "");
    const many = problems.length > 1 ? ` ${problems.length - 1} more are left out.` : "";
    problem.textContent = problems.length ? `${problems[0]}${many}` : "";
    const found = answered(samples, graphs, tokenSplit(ask.own.value));
    answer.textContent = found.sentence;
    pictures.replaceChildren(...graphs.map((graph) => html("figure", {},
      drawing(graph, new Set(graph.last === found.last ? found.picked : [])), html("figcaption", {}, layerWords(graph)))));
  };
  const element = html("section", { class: "graph-scene", "aria-label": "The graph of next tokens" },
    html("p", { class: "hint" }, "An arrow A → B says: both stood in a context with this last token, and A came next. ",
      "Attention that learns to predict the next token keeps what is on top, and shares itself inside a dashed group."),
    html("div", { class: "fields" }, lines.element, html("div", {}, ask.element, answer, problem, example)), pictures);
  // A state without a text shows the example; a person may still empty the field.
  const update = (/** @type {{graph: string}} */ { graph }) => {
    const wanted = graph || (shown === "" ? "" : GRAPH_DEFAULT);
    if (wanted === shown) return;
    question = null;
    draw(wanted);
  };
  return { element, update };
}
