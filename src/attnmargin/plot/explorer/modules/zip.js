// Zip archives: written without compression; read stored or deflated.

/** Most bytes of an archive, and of all it holds. */
const MOST = 64 * 2 ** 20;
const LARGE = "This file is too large for this page.";
const BROKEN = "This is not an .npz file, or it is damaged.";

/** An Error whose message is a sentence for people. */
class ZipError extends Error {}

/** @type {Uint32Array | null} */
let crcTable = null;

function tableOnce() {
  crcTable ??= Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n;
  });
  return crcTable;
}

/** CRC-32. @param {Uint8Array} bytes */
function sumOf(bytes) {
  const table = tableOnce();
  let sum = -1;
  for (const byte of bytes) sum = table[(sum ^ byte) & 255] ^ (sum >>> 8);
  return ~sum >>> 0;
}

/** Little-endian numbers: pairs of value and number of bytes. @param {number[][]} fields */
function numbers(fields) {
  const bytes = [];
  for (const [value, size] of fields) for (let k = 0; k < size; k++) bytes.push((value >>> (8 * k)) & 255);
  return bytes;
}

/** Join parts. @param {(Uint8Array | number[])[]} parts */
export function zipJoined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Write an archive without compression. @param {[string, Uint8Array][]} files */
export function zipWrite(files) {
  const parts = [], central = [];
  let at = 0, size = 0;
  for (const [name, bytes] of files) {
    const letters = new TextEncoder().encode(name), length = bytes.length;
    // 2.0 is needed; UTF-8 names; stored; 1 January 1980.
    const own = numbers([[20, 2], [2048, 2], [0, 2], [0, 2], [33, 2], [sumOf(bytes), 4],
      [length, 4], [length, 4], [letters.length, 2], [0, 2]]);
    const entry = [...numbers([[0x02014b50, 4], [20, 2]]), ...own,
      ...numbers([[0, 2], [0, 2], [0, 2], [0, 4], [at, 4]]), ...letters];
    const header = [...numbers([[0x04034b50, 4]]), ...own, ...letters];
    parts.push(header, bytes);
    central.push(entry);
    at += header.length + length;
    size += entry.length;
  }
  const end = numbers([[0x06054b50, 4], [0, 4], [files.length, 2], [files.length, 2], [size, 4], [at, 4], [0, 2]]);
  return zipJoined([...parts, ...central, end]);
}

/** Where the list of files begins, and how many there are. @param {DataView} view */
function endOf(view) {
  for (let at = view.byteLength - 22; at >= Math.max(0, view.byteLength - 65557); at--) {
    if (view.getUint32(at, true) === 0x06054b50) {
      return { count: view.getUint16(at + 10, true), start: view.getUint32(at + 16, true) };
    }
  }
  throw new ZipError(BROKEN);
}

/** Unpack one file, of a size that the archive has promised.
 * @param {Uint8Array} packed @param {number} method @param {number} size */
async function unpack(packed, method, size) {
  if (method === 0) return packed;
  if (method !== 8) throw new ZipError("This archive is compressed in a way that this page cannot read.");
  const stream = new Blob([/** @type {BlobPart} */ (packed)]).stream()
    .pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader(), parts = [];
  for (let total = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return zipJoined(parts);
    total += value.length;
    if (total > size) throw new ZipError(BROKEN);
    parts.push(value);
  }
}

/** One file of the list. @param {DataView} view @param {Uint8Array} bytes @param {number} at */
async function readEntry(view, bytes, at) {
  if (view.getUint32(at, true) !== 0x02014b50) throw new ZipError(BROKEN);
  const [packed, size, letters] = [view.getUint32(at + 20, true), view.getUint32(at + 24, true), view.getUint16(at + 28, true)];
  const header = view.getUint32(at + 42, true);
  if (view.getUint16(at + 8, true) & 1) throw new ZipError("This archive is encrypted.");
  if (size > MOST) throw new ZipError(LARGE);
  const start = header + 30 + view.getUint16(header + 26, true) + view.getUint16(header + 28, true);
  if (start + packed > bytes.length) throw new ZipError(BROKEN);
  const content = await unpack(bytes.subarray(start, start + packed), view.getUint16(at + 10, true), size);
  if (content.length !== size || sumOf(content) !== view.getUint32(at + 16, true)) throw new ZipError(BROKEN);
  const name = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + letters));
  return { name, content, next: at + 46 + letters + view.getUint16(at + 30, true) + view.getUint16(at + 32, true) };
}

/** @param {Uint8Array} bytes */
async function readEntries(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { count, start } = endOf(view);
  /** @type {Map<string, Uint8Array>} */
  const files = new Map();
  for (let k = 0, at = start, total = 0; k < count; k++) {
    const entry = await readEntry(view, bytes, at);
    total += entry.content.length;
    if (total > MOST) throw new ZipError(LARGE);
    files.set(entry.name, entry.content);
    at = entry.next;
  }
  return files;
}

/** Read all files of an archive; an Error says in one sentence why not.
 * @param {Uint8Array} bytes @returns {Promise<Map<string, Uint8Array>>} */
export async function zipRead(bytes) {
  if (bytes.length > MOST) throw new ZipError(LARGE);
  try {
    return await readEntries(bytes);
  } catch (error) {
    // Offsets beyond the end, and streams that do not inflate.
    throw error instanceof ZipError ? error : new ZipError(BROKEN);
  }
}
