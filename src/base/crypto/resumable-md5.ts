// MD5 (RFC 1321) that may be left off and gone on with later: its state is some bytes that can be stored. Node's own keeps
// its state to itself, and what the registry has keeps it in a form that is not for storing. Slower than Node's by the
// byte: for the digest of few short values, not for data.
import { asBuffer, concatBytes } from '../bytes/bytes.ts';

const BLOCK_BYTES = 64;
const STATE_BYTES = 16;
/** The number of bits, at the end. */
const LENGTH_BYTES = 8;
/** RFC 1321, section 3.4: how far each step of a round turns, and the sines that it adds. */
const TURNS = Uint8Array.of(7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21);
const SINES = Int32Array.from({ length: 64 }, (_, step) =>
  Math.floor(Math.abs(Math.sin(step + 1)) * 2 ** 32),
);
/** Section 3.4: which word of the block a step of each round takes. */
const WORDS = Uint8Array.from({ length: 64 }, (_, step) => {
  const [times, plus] = (
    [
      [1, 0],
      [5, 1],
      [3, 5],
      [7, 0],
    ] as const
  )[step >> 4] ?? [1, 0];
  return (times * step + plus) % 16;
});

/** The four words, little-endian | what does not fill a block yet. */
export type Md5State = Uint8Array;

/** Section 3.3. Of nothing so far. */
export const MD5_BEGUN: Md5State = Buffer.from('0123456789abcdeffedcba9876543210', 'hex');

/** With `bytes` behind what it has digested. */
export function extendMd5(state: Md5State, bytes: Uint8Array): Md5State {
  const words = readWords(state);
  const input = concatBytes(state.subarray(STATE_BYTES), bytes);
  const wholeBytes = input.length - (input.length % BLOCK_BYTES);
  digestBlocks(words, input.subarray(0, wholeBytes));
  return Buffer.concat([bytesOf(words), input.subarray(wholeBytes)]);
}

/** The digest of all `lengthBytes` that it has taken, hex. It may be gone on with all the same. */
export function digestOfMd5(state: Md5State, lengthBytes: number): string {
  const rest = state.subarray(STATE_BYTES);
  const last = Buffer.alloc((rest.length + LENGTH_BYTES < BLOCK_BYTES ? 1 : 2) * BLOCK_BYTES);
  last.set(rest);
  last[rest.length] = 0x80;
  // In bits, which 48 bits of bytes fit into.
  last.writeUInt32LE((lengthBytes << 3) >>> 0, last.length - LENGTH_BYTES);
  last.writeUInt32LE(Math.floor(lengthBytes / 2 ** 29) >>> 0, last.length - 4);
  const words = readWords(state);
  digestBlocks(words, last);
  return bytesOf(words).toString('hex');
}

function readWords(state: Md5State): Int32Array {
  const bytes = asBuffer(state);
  const words = new Int32Array(4);
  for (let word = 0; word < 4; word++) words[word] = bytes.readInt32LE(4 * word);
  return words;
}

function bytesOf(words: Int32Array): Buffer {
  const bytes = Buffer.allocUnsafe(STATE_BYTES);
  for (let word = 0; word < 4; word++) bytes.writeInt32LE(words[word] ?? 0, 4 * word);
  return bytes;
}

function digestBlocks(words: Int32Array, blocks: Uint8Array): void {
  const bytes = asBuffer(blocks);
  const block = new Int32Array(16);
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
    for (let word = 0; word < 16; word++) block[word] = bytes.readInt32LE(at + 4 * word);
    digestBlock(words, block);
  }
}

/** Section 3.4. */
function digestBlock(words: Int32Array, block: Int32Array): void {
  let a = words[0] ?? 0;
  let b = words[1] ?? 0;
  let c = words[2] ?? 0;
  let d = words[3] ?? 0;
  for (let step = 0; step < 64; step++) {
    const round = step >> 4;
    let mixed: number;
    if (round === 0) mixed = (b & c) | (~b & d);
    else if (round === 1) mixed = (b & d) | (c & ~d);
    else if (round === 2) mixed = b ^ c ^ d;
    else mixed = c ^ (b | ~d);
    const sum = (a + mixed + (block[WORDS[step] ?? 0] ?? 0) + (SINES[step] ?? 0)) | 0;
    const turn = TURNS[4 * round + (step & 3)] ?? 0;
    a = d;
    d = c;
    c = b;
    b = (b + ((sum << turn) | (sum >>> (32 - turn)))) | 0;
  }
  words[0] = (words[0] ?? 0) + a;
  words[1] = (words[1] ?? 0) + b;
  words[2] = (words[2] ?? 0) + c;
  words[3] = (words[3] ?? 0) + d;
}
