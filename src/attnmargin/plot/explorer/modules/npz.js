// .npz files: arrays as numpy writes them, in a zip archive.

import { zipJoined, zipRead, zipWrite } from "./zip.js";

/**
 * An array in C order; false is 0, true is 1.
 * @typedef {{kind: "float" | "int" | "bool", shape: number[], values: ArrayLike<number>}
 *   | {kind: "text", shape: number[], values: string[]}} NpzArray
 */

const MAGIC = [0x93, 78, 85, 77, 80, 89, 1, 0];
const TYPES = { float: "<f8", int: "<i8", bool: "|b1" };

/** @param {string} text */
function lettersOf(text) {
  return Array.from(text, (letter) => /** @type {number} */ (letter.codePointAt(0)));
}

/** @param {NpzArray} array @returns {{descr: string, bytes: Uint8Array}} */
function bodyOf(array) {
  if (array.kind === "text") {
    const rows = array.values.map(lettersOf);
    const width = rows.reduce((most, row) => Math.max(most, row.length), 1);
    const view = new DataView(new ArrayBuffer(4 * width * rows.length));
    rows.forEach((row, i) => row.forEach((code, k) => view.setUint32(4 * (i * width + k), code, true)));
    return { descr: `<U${width}`, bytes: new Uint8Array(view.buffer) };
  }
  const { kind, values } = array, size = kind === "bool" ? 1 : 8;
  const view = new DataView(new ArrayBuffer(size * values.length));
  for (let i = 0; i < values.length; i++) {
    if (kind === "float") view.setFloat64(8 * i, values[i], true);
    else if (kind === "int") view.setBigInt64(8 * i, BigInt(values[i]), true);
    else view.setUint8(i, values[i] ? 1 : 0);
  }
  return { descr: TYPES[kind], bytes: new Uint8Array(view.buffer) };
}

/** @param {NpzArray} array */
function writeArray(array) {
  const { descr, bytes } = bodyOf(array);
  const shape = array.shape.map((size) => `${size},`).join(" ");
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape}), }`;
  // The header ends with a line break, at a multiple of 64 bytes.
  const header = `${text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11)}\n`;
  const size = [header.length & 255, header.length >> 8];
  return zipJoined([MAGIC, size, lettersOf(header), bytes]);
}

/** Write arrays as numpy's `savez` does; float64, int64, bool and unicode.
 * @param {Record<string, NpzArray>} arrays @returns {Uint8Array} */
export function writeNpz(arrays) {
  return zipWrite(Object.entries(arrays).map(([name, array]) => [`${name}.npy`, writeArray(array)]));
}

/** @type {Record<string, (view: DataView, at: number, little: boolean) => number>} */
const READERS = {
  f4: (view, at, little) => view.getFloat32(at, little),
  f8: (view, at, little) => view.getFloat64(at, little),
  i4: (view, at, little) => view.getInt32(at, little),
  i8: (view, at, little) => Number(view.getBigInt64(at, little)),
  b1: (view, at) => view.getUint8(at),
};

/** @param {string} name @param {string} why */
function wrong(name, why) {
  return new Error(`The array ${name.slice(0, 30)} ${why}.`);
}

/** Read the header of an array. @param {string} name @param {Uint8Array} bytes @param {DataView} view */
function headerOf(name, bytes, view) {
  const known = bytes.length >= 12 && MAGIC.slice(0, 6).every((byte, k) => bytes[k] === byte);
  const version = known ? bytes[6] : 0;
  if (version < 1 || version > 3) throw wrong(name, "is damaged");
  const start = version === 1 ? 10 : 12;
  const end = start + (version === 1 ? view.getUint16(8, true) : view.getUint32(8, true));
  const text = new TextDecoder().decode(bytes.subarray(start, end));
  const descr = text.match(/'descr': *'([<>|=])([a-zA-Z])(\d*)'/);
  const order = text.match(/'fortran_order': *(True|False)/), shape = text.match(/'shape': *\(([\d, ]*)\)/);
  if (!descr && /'descr'/.test(text)) throw wrong(name, "holds objects or records, not plain numbers or text");
  if (!descr || !order || !shape || end > bytes.length) throw wrong(name, "is damaged");
  const [, mark, letter, size] = descr;
  const sizes = (shape[1].match(/\d+/g) ?? []).map(Number);
  return { little: mark !== ">", type: letter + size, letter, width: Number(size), fortran: order[1] === "True", shape: sizes, start: end };
}

/** Positions of the entries in C order, of an array that is stored column by column. @param {number[]} shape @param {number} count */
function columns(shape, count) {
  const strides = shape.map((_, k) => shape.slice(0, k).reduce((a, b) => a * b, 1));
  return Array.from({ length: count }, (_, i) => {
    let at = 0;
    for (let k = shape.length - 1; k >= 0; k--) {
      at += (i % shape[k]) * strides[k];
      i = Math.floor(i / shape[k]);
    }
    return at;
  });
}

/** @param {DataView} view @param {number} at @param {number} width @param {boolean} little */
function textAt(view, at, width, little) {
  let text = "";
  for (let k = 0; k < width; k++) text += String.fromCodePoint(view.getUint32(at + 4 * k, little));
  return text.replace(/\0+$/, "");
}

/** @param {string} name @param {Uint8Array} bytes @returns {NpzArray} */
function readArray(name, bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { little, type, letter, width, fortran, shape, start } = headerOf(name, bytes, view);
  const read = READERS[type], text = letter === "U";
  if (!read && !text) throw wrong(name, `has entries of type ${type}; this page reads f4, f8, i4, i8, b1 and U`);
  const count = shape.reduce((a, b) => a * b, 1), size = text ? 4 * width : width;
  if (start + count * size > bytes.length || count > bytes.length) throw wrong(name, "is damaged: it ends too early");
  const places = fortran ? columns(shape, count) : null;
  const at = (/** @type {number} */ i) => start + size * (places ? places[i] : i);
  if (text) return { kind: "text", shape, values: Array.from({ length: count }, (_, i) => textAt(view, at(i), width, little)) };
  const kind = letter === "f" ? "float" : letter === "i" ? "int" : "bool";
  return { kind, shape, values: Array.from({ length: count }, (_, i) => read(view, at(i), little)) };
}

/** Read arrays; an Error says in one sentence why not.
 * @param {ArrayBuffer | Uint8Array} buffer @returns {Promise<Record<string, NpzArray>>} */
export async function readNpz(buffer) {
  const files = await zipRead(buffer instanceof Uint8Array ? buffer : new Uint8Array(buffer));
  /** @type {Record<string, NpzArray>} */
  const arrays = {};
  for (const [file, bytes] of files) {
    if (!file.endsWith(".npy")) continue;
    const name = file.slice(0, -4);
    try {
      arrays[name] = readArray(name, bytes);
    } catch (error) {
      if (error instanceof RangeError) throw wrong(name, "is damaged");
      throw error;
    }
  }
  return arrays;
}
