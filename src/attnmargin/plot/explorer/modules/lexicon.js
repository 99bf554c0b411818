// Words with small vectors of our own. The first number says how good or bad a word is; the others
// tell topics and words apart. GIVEN are the words of the demo (data/demo_reviews.py), with its
// numbers, and topics that it lacks, spread apart. Every other vector follows a rule: the tenths
// written behind the word, then 0.7 times the vector of its topic, plus noise that the letters of
// the word decide; two decimals.

/** Length of the vectors. */
export const LEX_WIDTH = 8;

const GIVEN = [
  "a 0 .1 -.6 .3 .2 -.3 -.3 -.1",
  "acting .15 -.1 -.8 .3 -.7 .7 -.5 1.1",
  "boring -.9 .6 .4 .5 .1 -.2 -.1 .2",
  "brilliant .9 -1.1 .5 -.7 -.1 .4 .2 .4",
  "but -.15 -.9 0 .2 -.3 .6 2.1 -.4",
  "dull -.8 -.7 -.1 -.4 -.2 -.1 -.2 -.4",
  "food .1 -.3 .5 0 -.4 -.8 -1 -.1",
  "great .8 -.4 -.2 .2 .3 -.1 .7 .1",
  "its .05 -.4 .3 .5 -.3 .7 .5 -.2",
  "music .15 -.4 .1 .1 -.8 0 -.4 -.9",
  "plot -.05 .5 -.2 -.3 0 .5 .2 .7",
  "service .05 -.3 1.2 -.3 .5 .4 -.4 .3",
  "slow -.6 .5 -.4 .4 .8 -.6 0 .3",
  "story .1 .2 -.5 -.2 .7 0 -.4 .2",
  "the 0 .1 0 0 .2 -.1 .2 -.2",
  "was -.1 -.7 -.3 -.2 0 .4 .2 -.3",
  "with .05 .5 -.3 -.3 .4 .5 -.7 -.5",
  "wonderful 1 -.2 .8 0 .6 .5 .3 -.4",
  "film .05 0 .5 .3 -.6 0 .8 .3",
  "place .03 .3 -.8 .2 -.3 -.7 .3 -.1",
  "price -.05 -1.1 -.2 .2 .3 -.2 .2 .1",
  "tech .02 .2 .3 -.2 .6 -.5 .4 -.7",
  "people .04 -.2 -.1 -1.1 -.3 -.1 .2 .2",
  "weather -.02 .2 .1 1.1 .3 .1 -.2 -.1",
  "travel .06 0 -.2 -.1 .2 1 .5 -.4",
  "opinion .01 1.1 .2 -.2 -.3 .2 -.2 -.1",
];

// Topics and their words, with the tenths of good (up to 9) or bad (down to -9); without a number, neutral.
const TOPICS = {
  film: "movie cinema screen scene director camera picture series show episode ending trailer sequel comedy1 drama documentary thriller horror-1 cartoon effects",
  acting: "actor actress cast performance hero villain role character characters star stars lead child voice dialogue",
  story: "book novel script writing author chapter page pages twist idea plots tale poem message subject",
  music: "song songs sound singer band concert melody1 rhythm guitar piano album lyrics noise-4 soundtrack dance",
  food: "meal dish soup pizza pasta bread rice salad fish meat chicken burger cheese cake dessert coffee tea wine beer sauce breakfast lunch dinner menu taste chef cook vegetables fruit",
  service: "waiter waitress staff manager host delivery support order booking help3 reply team desk guide doctor driver",
  place: "hotel room bed bathroom kitchen restaurant cafe bar shop city town street house garden museum beach park view2 station airport building table floor pool lobby",
  price: "cost money bill value3 deal2 discount3 cheap3 expensive-5 overpriced-8 free4 fair4 affordable5 costly-5 bargain5 ticket tickets fee-2",
  tech: "phone laptop computer battery camera keyboard app website software game games update internet button design speaker headphones charger printer manual",
  people: "man woman friend2 friends2 family children kids crowd-1 audience guests neighbours teacher student people boss",
  weather: "sun2 rain-2 snow wind storm-4 sky heat-2 summer winter morning evening night day week year sunny5 rainy-3 cloudy-2 windy-2",
  travel: "trip train bus car flight road seat journey tour holiday2 walk traffic-3 luggage plane ride",
  opinion: "good6 nice5 excellent9 superb9 amazing9 fantastic9 perfect9 lovely7 beautiful8 delightful8 charming7 funny6 hilarious8 clever6 smart6 fresh5 tasty7 delicious9 friendly7 kind6 helpful7 fast4 quick4 clean6 comfortable6 cosy6 warm4 bright4 stunning9 gripping7 moving6 touching6 original5 memorable6 solid4 reliable6 easy4 simple2 fun6 exciting7 thrilling7 elegant6 generous6 polite6 masterpiece9 gem7 joy7 pleasure6 love8 loved8 like4 liked4 enjoyed6 enjoy5 recommend6 best9 better4 happy7 impressive7 outstanding9 magnificent9 awesome8 interesting5 fine3 okay1 decent3 average-1 bad-7 awful-9 terrible-9 horrible-9 poor-6 worst-9 worse-6 weak-5 stupid-8 silly-4 annoying-7 noisy-5 dirty-8 rude-8 cold-4 bland-6 stale-6 soggy-5 burnt-6 broken-7 late-4 lazy-6 tired-3 tedious-8 predictable-5 shallow-5 flat-4 forgettable-6 disappointing-7 disappointed-7 disappointment-7 mess-6 waste-8 hate-8 hated-8 ugly-7 useless-9 faulty-7 uncomfortable-6 cramped-5 small-2 tiny-2 long-2 short-1 loud-3 quiet3 dark-2 strange-2 weird-3 sad-4 mediocre-4 unfriendly-7 careless-6 confusing-5 clumsy-5 wooden-5 painful-7 fails-6 failed-6 crashes-7 problem-4 problems-4 wrong-5",
  the: "an this that these those it he she they we i you my your his her their our is are were be been am has have had do did does will would can could not-4 never-3 no-3 nothing-4 and or so if than then as at by for from in of on to into about after before over under without-2 while because although though yet however still just only even really1 very1 too-1 quite1 rather almost again always often sometimes here there all some any every many much more most few less what who which when where how why one two three first last new2 old-1 big little-1 well4 also both far near up down out off made makes make feels felt looks looked sounds went came got get say said think thought find found left stay stayed watch watched read eat ate",
};

/** @type {Map<string, number[]> | null} */
let wholeTable = null;

/** Numbers in [-1, 1) that the letters decide: FNV-1a, then mulberry32.
 * @param {string} word @returns {number[]} */
function noise(word) {
  let state = 2166136261;
  for (let i = 0; i < word.length; i++) state = Math.imul(state ^ word.charCodeAt(i), 16777619);
  return Array.from({ length: LEX_WIDTH - 1 }, () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2147483648 - 1;
  });
}

/** @param {string} word @param {number} sentiment @param {number[]} centre @param {number} width */
function rowOf(word, sentiment, centre, width) {
  const rest = noise(word).map((x, k) => Math.round(100 * (centre[k] + width * x)) / 100 + 0);
  return [sentiment, ...rest];
}

const NOWHERE = new Array(LEX_WIDTH - 1).fill(0);

/** @param {string} topic @param {string} words @param {Map<string, number[]>} table */
function addTopic(topic, words, table) {
  const centre = /** @type {number[]} */ (table.get(topic)).slice(1).map((x) => 0.7 * x);
  for (const entry of words.split(" ")) {
    const [, word, tenths] = /** @type {RegExpMatchArray} */ (entry.match(/^([a-z]+)(-?\d?)$/));
    // A hundredth here or there, by the letters, so that few words tie.
    const shade = Math.round(4 * noise(`${word}!`)[0]) / 100;
    const sentiment = Math.round(10 * Number(tenths) + 100 * shade) / 100;
    if (!table.has(word)) table.set(word, rowOf(word, sentiment, centre, 0.35));
  }
}

/** @returns {Map<string, number[]>} */
function build() {
  const table = new Map();
  for (const line of GIVEN) {
    const [word, ...numbers] = line.split(" ");
    table.set(word, numbers.map(Number));
  }
  for (const [topic, words] of Object.entries(TOPICS)) addTopic(topic, words, table);
  return table;
}

function all() {
  wholeTable ??= build();
  return wholeTable;
}

/** Lower case, without punctuation around it; of a plural that has no vector, the singular.
 * @param {string} word */
function plainWord(word) {
  const plain = word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
  const single = plain.replace(/s$/, "");
  return !all().has(plain) && all().has(single) ? single : plain;
}

/** The words that have a vector. @returns {string[]} */
export function lexWords() {
  return [...all().keys()];
}

/** Whether a word, however it is written, has a vector. @param {string} word */
export function lexKnown(word) {
  return all().has(plainWord(word));
}

/** The vector of a word; of an unknown one, neutral and drawn by hash.
 * @param {string} word @returns {number[]} */
export function lexVector(word) {
  const plain = plainWord(word);
  return [...(all().get(plain) ?? rowOf(plain, 0, NOWHERE, 0.4))];
}
