// Dragging and keys on the picture.
/** @import { Handle } from "./picture.js" */

/**
 * What a person does with a handle. Moves are in pixels of the picture.
 * @typedef {object} Hands
 * @property {(handle: Handle) => void} take
 * @property {(handle: Handle, dx: number, dy: number) => void} move
 * @property {() => void} release
 * @property {(handle: Handle) => void} remove
 * @property {(x: number, y: number) => void} add  a token, where nothing is
 */

const STEP = 4, LONG = 20;
/** @type {Record<string, number[]>} */
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** @param {EventTarget | null} target @returns {Handle | null} */
function handleOf(target) {
  const key = target instanceof Element ? target.closest("[data-handle]")?.getAttribute("data-handle") : null;
  if (!key) return null;
  const [kind, i, t] = key.split("-");
  return { kind, i: Number(i), t: Number(t) };
}

/**
 * Listen to a picture.
 * @param {SVGSVGElement} picture
 * @param {Hands} hands
 */
export function listenToHands(picture, hands) {
  /** @type {{handle: Handle, x: number, y: number} | null} */
  let held = null;
  const place = (/** @type {MouseEvent} */ event) => {
    const box = picture.getBoundingClientRect(), size = picture.viewBox.baseVal;
    return [size.x + ((event.clientX - box.left) * size.width) / box.width,
      size.y + ((event.clientY - box.top) * size.height) / box.height];
  };
  picture.addEventListener("pointerdown", (event) => {
    const handle = handleOf(event.target);
    if (!handle || event.button) return;
    const [x, y] = place(event);
    held = { handle, x, y };
    picture.setPointerCapture(event.pointerId);
    hands.take(handle);
    event.preventDefault();
    const own = /** @type {SVGElement | null} */ (event.target instanceof Element ? event.target.closest("[data-handle]") : null);
    own?.focus({ preventScroll: true });
  });
  picture.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [x, y] = place(event);
    const [dx, dy] = [x - held.x, y - held.y];
    [held.x, held.y] = [x, y];
    hands.move(held.handle, dx, dy);
  });
  const release = () => {
    if (held) hands.release();
    held = null;
  };
  picture.addEventListener("pointerup", release);
  picture.addEventListener("pointercancel", release);
  picture.addEventListener("dblclick", (event) => {
    if (!handleOf(event.target)) hands.add(...pairOf(place(event)));
  });
  picture.addEventListener("keydown", (event) => {
    const handle = handleOf(event.target);
    if (!handle) return;
    const way = KEYS[event.key];
    if (way) {
      const far = event.shiftKey ? LONG : STEP;
      hands.take(handle);
      hands.move(handle, far * way[0], far * way[1]);
      hands.release();
      event.preventDefault();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      held = null;
      hands.remove(handle);
      event.preventDefault();
    }
  });
}

/** @param {number[]} point @returns {[number, number]} */
function pairOf(point) {
  return [point[0], point[1]];
}
