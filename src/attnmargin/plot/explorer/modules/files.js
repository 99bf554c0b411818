// Out of the page and into it: links, Python, .npz, pictures.
/** @import { State } from "./state.js" */
import { dataFromArrays, dataToArrays } from "./arrays.js";
import { button, html, setAttributes } from "./dom.js";
import { encodeState } from "./link.js";
import { runSettings } from "./look.js";
import { readNpz, writeNpz } from "./npz.js";
import { pythonText } from "./python.js";
import { HALF } from "./view.js";

const PIXELS = 1600;

/**
 * Buttons to share, copy and save; the whole explorer takes dropped files.
 * @param {HTMLElement} root
 * @param {() => State} current
 * @param {(part: Partial<State>) => void} change
 * @param {() => SVGSVGElement} picture
 * @returns {{element: HTMLElement}}
 */
export function makeFiles(root, current, change, picture) {
  const note = html("p", { class: "note", role: "status" });
  const say = (/** @type {string} */ text) => { note.textContent = text; };
  const open = async (/** @type {File} */ file) => {
    try {
      const { data, words } = dataFromArrays(await readNpz(await file.arrayBuffer()));
      change({ scene: "plane", data, words, start: [], focus: 0 });
      say(`${file.name} is open.`);
    } catch (error) {
      say(`${file.name}: ${error instanceof Error ? error.message : "cannot be read"}`);
    }
  };
  const chooser = /** @type {HTMLInputElement} */ (html("input", { type: "file", accept: ".npz", hidden: true, "aria-label": "a .npz file" }));
  chooser.addEventListener("change", () => { if (chooser.files?.[0]) open(chooser.files[0]); chooser.value = ""; });
  root.addEventListener("dragover", (event) => event.preventDefault());
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (file) open(file);
  });
  const element = html("section", { class: "files", "aria-label": "share and save" },
    button("copy link", () => {
      if (encodeState(current())) copy(linkOf(current()), "The link is copied: it holds this state.", say);
      else say("These data are too large for a link: save them as .npz.");
    }),
    button("copy as Python", () => copy(pythonOf(current()), "The lines are copied: they build these data and call am.predict.", say)),
    button("save .npz", () => {
      const { data, words } = current();
      save(new Blob([/** @type {BlobPart} */ (writeNpz(dataToArrays(data, words)))]), "data.npz");
    }),
    button("open .npz", () => chooser.click(), { title: "or drop a file anywhere" }),
    button("save SVG", () => save(new Blob([pictureText(root, picture())], { type: "image/svg+xml" }), "attention.svg")),
    button("save PNG", () => savePixels(root, picture())),
    chooser, note);
  return { element };
}

/** @param {State} state */
function linkOf(state) {
  const hash = `#${encodeState(state)}`;
  if (typeof location !== "undefined") history.replaceState(null, "", hash);
  return typeof location === "undefined" ? hash : location.href;
}

/** @param {State} state */
function pythonOf(state) {
  return pythonText(state.data, state.settings, runSettings(state, state.settings).start);
}

/** @param {string} text @param {string} done @param {(text: string) => void} say */
async function copy(text, done, say) {
  try {
    await navigator.clipboard.writeText(text);
    say(done);
  } catch {
    say(text);
  }
}

/** @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = /** @type {HTMLAnchorElement} */ (html("a", { href: URL.createObjectURL(blob), download: name }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/**
 * The picture as a file of its own, with its style.
 * @param {HTMLElement} root
 * @param {SVGSVGElement} picture
 */
export function pictureText(root, picture) {
  const copied = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  const own = getComputedStyle(root);
  const names = [...Array.from({ length: 8 }, (_, k) => `--s${k}`), "--pick", "--line", "--soft", "--ink", "--paper"];
  const values = names.map((name) => `${name}:${own.getPropertyValue(name)}`).join(";");
  const style = document.querySelector("style[data-explorer]")?.textContent ?? "";
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "style");
  sheet.textContent = `${style} .explorer{${values};color:${own.color}}`;
  copied.prepend(sheet);
  setAttributes(copied, { class: "explorer plane", xmlns: "http://www.w3.org/2000/svg", width: 2 * HALF, height: 2 * HALF });
  return new XMLSerializer().serializeToString(copied);
}

/** @param {HTMLElement} root @param {SVGSVGElement} picture */
function savePixels(root, picture) {
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = PIXELS;
    const pen = canvas.getContext("2d");
    if (!pen) return;
    pen.fillStyle = getComputedStyle(root).getPropertyValue("--paper") || "white";
    pen.fillRect(0, 0, PIXELS, PIXELS);
    pen.drawImage(image, 0, 0, PIXELS, PIXELS);
    canvas.toBlob((blob) => { if (blob) save(blob, "attention.png"); });
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(pictureText(root, picture))}`;
}
