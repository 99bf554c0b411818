// Sentences as attention data, and the scene that shows them.

import { button, html } from "./dom.js";
import { LEX_WIDTH, lexKnown, lexVector } from "./lexicon.js";
import { tokenSplit } from "./tokengraph.js";

/** @typedef {import("./types.js").Data} Data */
/** @typedef {{text: string, query: number, label: number}} Sentence  query: index of a word; label: ±1 */
/** @typedef {{selection?: (number | null)[] | null, best?: number[], support?: boolean[][]}} SentenceLook */
/** @typedef {{attention: ArrayLike<number>[]}} SentenceFrame */

/** Most sentences, and most words of one. */
export const SENTENCES_MOST = 8;
export const SENTENCES_WORDS = 12;

/** The six reviews of the demo. @type {Sentence[]} */
export const SENTENCES_DEFAULT = [
  { text: "the plot was dull but its music wonderful", query: 1, label: -1 },
  { text: "the plot was dull but its music wonderful", query: 6, label: 1 },
  { text: "great food but slow service", query: 1, label: 1 },
  { text: "great food but slow service", query: 4, label: -1 },
  { text: "a boring story with brilliant acting", query: 2, label: -1 },
  { text: "a boring story with brilliant acting", query: 5, label: 1 },
];

/** Sentences that a visitor may add. @type {Sentence[]} */
const MORE = [
  { text: "a tiny room with a stunning view", query: 2, label: -1 },
  { text: "the phone is elegant but its battery terrible", query: 6, label: -1 },
  { text: "cold rain all week yet friendly people", query: 6, label: 1 },
];

/** The words of a sentence, at most twelve. @param {string} text */
function wordsOf(text) {
  return tokenSplit(text).slice(0, SENTENCES_WORDS);
}

/** Build data: words are tokens, the chosen word is the query, the head reads the first number.
 * @param {Sentence[]} sentences @returns {{data: Data, words: string[][]}} */
export function sentencesData(sentences) {
  const words = sentences.map((s) => wordsOf(s.text));
  const X = words.map((row) => row.map(lexVector));
  const z = sentences.map((s, i) => [...X[i][Math.min(s.query, X[i].length - 1)]]);
  const v = Array.from({ length: LEX_WIDTH }, (_, k) => (k === 0 ? 1 : 0));
  return { data: { X, z, y: sentences.map((s) => s.label), v }, words };
}

/** Replace the words of a sentence; the query stays on its word if that word stays.
 * @param {Sentence} sentence @param {string} text @returns {Sentence} */
export function sentencesEdited(sentence, text) {
  const words = wordsOf(text);
  if (!words.length) return sentence;
  const old = wordsOf(sentence.text)[sentence.query];
  const same = words[sentence.query] === old ? sentence.query : words.indexOf(old);
  const query = same >= 0 ? same : Math.min(sentence.query, words.length - 1);
  return { ...sentence, text: words.join(" "), query };
}

/** @param {string[]} marks @param {number} share */
function said(marks, share) {
  return [...marks, `${Math.round(100 * share)} % of attention`].join(", ");
}

/** The view: rows of buttons, painted anew at every frame. */
class View {
  /** @param {(part: {sentences: Sentence[]}) => void} change */
  constructor(change) {
    this.change = change;
    /** @type {Sentence[]} */
    this.sentences = [];
    this.shown = "";
    // The sentence that is edited, and its text so far.
    this.editing = -1;
    this.draft = "";
    /** @type {HTMLButtonElement[][]} */
    this.words = [];
    /** @type {SentenceLook | null} */
    this.look = null;
    /** @type {SentenceFrame | null} */
    this.frame = null;
    this.list = html("ol", { class: "sentences" });
    this.add = button("add a sentence", () => this.append(), { class: "add" });
    this.note = html("p", { class: "note", role: "status" });
    this.element = html("section", { class: "sentences-scene", "aria-label": "Sentences" },
      hint(), this.list, this.add, this.note, legend());
  }

  /** @param {{sentences: Sentence[]}} state @param {SentenceLook | null} look @param {SentenceFrame | null} frame */
  update(state, look, frame) {
    [this.look, this.frame] = [look, frame];
    const text = JSON.stringify(state.sentences);
    if (text === this.shown) return this.paint();
    this.editing = -1;
    this.build(state.sentences, text);
  }

  paint() {
    this.words.forEach((row, i) => row.forEach((item, t) => this.paintWord(item, i, t)));
  }

  /** @param {HTMLButtonElement} item @param {number} i @param {number} t */
  paintWord(item, i, t) {
    const { look, frame } = this;
    const share = frame?.attention[i]?.[t] ?? 0;
    const marks = [];
    if (this.sentences[i].query === t) marks.push("query");
    if (look?.selection?.[i] === t) marks.push("selected");
    if (look?.support?.[i]?.[t]) marks.push("support");
    if (look?.best?.[i] === t) marks.push("best");
    if (!lexKnown(item.textContent ?? "")) marks.push("unknown");
    const kind = ["word", ...marks].join(" ");
    const spoken = `${item.textContent}: ${said(marks, share)}`;
    item.style.setProperty("--a", share.toFixed(3));
    if (item.className !== kind) item.className = kind;
    if (item.getAttribute("aria-label") !== spoken) item.setAttribute("aria-label", spoken);
  }

  /** Build all rows; the focus returns to the same place.
   * @param {Sentence[]} sentences */
  build(sentences, text = JSON.stringify(sentences)) {
    [this.sentences, this.shown] = [sentences, text];
    const active = document.activeElement;
    const place = this.list.contains(active) ? active?.getAttribute("data-place") : null;
    this.words = [];
    this.list.replaceChildren(...this.sentences.map((sentence, i) => this.row(sentence, i)));
    this.add.disabled = this.sentences.length >= SENTENCES_MOST;
    this.paint();
    if (place) this.focus(place);
  }

  /** @param {string} place */
  focus(place) {
    const found = this.list.querySelector(`[data-place="${place}"]`);
    if (found instanceof HTMLElement) found.focus();
  }

  /** @param {Sentence} sentence @param {number} i */
  row(sentence, i) {
    const words = wordsOf(sentence.text).map((word, t) => this.word(word, i, t));
    this.words.push(words);
    const name = `Sentence ${i + 1}: choose the word that asks`;
    const group = html("div", { class: "words", role: "group", "aria-label": name }, ...words);
    group.addEventListener("keydown", (event) => this.step(event, i));
    const middle = this.editing === i ? this.field(i) : group;
    return html("li", {}, middle, this.tools(sentence, i));
  }

  /** @param {string} word @param {number} i @param {number} t */
  word(word, i, t) {
    const asks = this.sentences[i].query === t;
    const own = { "aria-pressed": String(asks), tabindex: asks ? 0 : -1, "data-place": `w${i}.${t}` };
    return button(word, () => this.put(i, { ...this.sentences[i], query: t }), own);
  }

  /** Arrow keys walk along the words. @param {KeyboardEvent} event @param {number} i */
  step(event, i) {
    const row = this.words[i], at = row.findIndex((item) => item === document.activeElement);
    const places = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: row.length - 1 };
    if (at < 0 || !(event.key in places)) return;
    event.preventDefault();
    row[places[/** @type {keyof typeof places} */ (event.key)]]?.focus();
  }

  /** @param {Sentence} sentence @param {number} i */
  tools(sentence, i) {
    const word = sentence.label > 0 ? "good" : "bad", other = sentence.label > 0 ? "bad" : "good";
    const name = `Sentence ${i + 1}`;
    const spoken = { "aria-label": `${name}: the answer is ${word}; make it ${other}` };
    const flip = button(word, () => this.put(i, { ...sentence, label: -sentence.label }),
      { ...spoken, class: `label ${word}`, "data-place": `l${i}` });
    const edit = button("edit", () => this.edit(i),
      { "aria-label": `${name}: edit`, "data-place": `e${i}` });
    const remove = button("×", () => this.remove(i),
      { "aria-label": `${name}: remove`, "data-place": `r${i}` });
    remove.disabled = this.sentences.length < 2;
    return html("div", { class: "tools" }, flip, edit, remove);
  }

  /** @param {number} i */
  field(i) {
    const input = /** @type {HTMLInputElement} */ (html("input", { value: this.draft, maxlength: 160, "data-place": `f${i}`,
      "aria-label": `Sentence ${i + 1}: text, at most ${SENTENCES_WORDS} words` }));
    const form = html("form", { class: "words" }, input,
      html("button", { type: "submit" }, "done"));
    form.addEventListener("submit", (event) => { event.preventDefault(); this.done(i, input.value); });
    input.addEventListener("input", () => { this.draft = input.value; });
    input.addEventListener("keydown", (event) => { if (event.key === "Escape") this.done(i, this.sentences[i].text); });
    return form;
  }

  /** @param {number} i */
  edit(i) {
    [this.editing, this.draft] = [i, this.sentences[i].text];
    this.build(this.sentences);
    const field = this.list.querySelector("input");
    field?.focus();
    field?.select();
  }

  /** @param {number} i @param {string} text */
  done(i, text) {
    const many = tokenSplit(text).length;
    this.editing = -1;
    this.put(i, sentencesEdited(this.sentences[i], text));
    this.note.textContent = many > SENTENCES_WORDS ? `Only the first ${SENTENCES_WORDS} words are kept.` : "";
    this.focus(`e${i}`);
  }

  /** @param {number} i @param {Sentence} sentence */
  put(i, sentence) {
    this.tell(this.sentences.map((old, k) => (k === i ? sentence : old)));
  }

  append() {
    const fresh = MORE.find((more) => this.sentences.every((s) => s.text !== more.text));
    this.tell([...this.sentences, { ...(fresh ?? MORE[0]) }]);
    this.edit(this.sentences.length - 1);
  }

  /** @param {number} i */
  remove(i) {
    this.editing = -1;
    this.tell(this.sentences.filter((_, k) => k !== i));
    this.focus(`r${Math.min(i, this.sentences.length - 1)}`);
  }

  /** Show the new sentences at once, and report them. @param {Sentence[]} sentences */
  tell(sentences) {
    this.build(sentences);
    this.change({ sentences });
  }
}

function hint() {
  return html("p", { class: "hint" },
    "Click a word: it asks the question (the query). Attention learns which word answers, so that ",
    "the answer is as good or bad as the label says. The stronger its colour, the more attention a word gets.");
}

function legend() {
  const chip = (/** @type {string} */ kind, /** @type {string} */ text) =>
    html("li", {}, html("span", { class: `word ${kind}`, "aria-hidden": "true" }, "word"), ` ${text}`);
  return html("ul", { class: "legend" }, chip("query", "asks (query)"),
    chip("selected", "this run selects it"), chip("support", "holds the margin (support)"),
    chip("best", "says most for the label"), chip("unknown", "unknown, vector from its letters"));
}

/** Show sentences, words shaded by attention; `change({sentences})` is called after every edit.
 * @param {(part: {sentences: Sentence[]}) => void} change
 * @returns {{element: HTMLElement, update: (state: {sentences: Sentence[]}, look: SentenceLook | null, frame: SentenceFrame | null) => void}} */
export function sentencesScene(change) {
  const view = new View(change);
  return { element: view.element, update: (state, look, frame) => view.update(state, look, frame) };
}
