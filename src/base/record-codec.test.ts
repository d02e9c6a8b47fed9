import { expect, test } from 'vitest';
import { packPlain, unpackPlain, unpackSent } from './record-codec.ts';

test('plain data comes back as it was, bytes as Buffers', () => {
  const plain = {
    nothing: null,
    flags: [true, false],
    numbers: [0, -1, 1.5, 2 ** 48],
    text: 'ä',
    bytes: Buffer.from([0, 255]),
    missing: undefined,
  };
  expect(unpackPlain(packPlain(plain))).toEqual(plain);
});

test.each([0x42, 0x62, 0x65, 0x69, 0x70, 0x73, 0x74, 0x78, 0xff])(
  'an extension of type %i is refused: it is no plain data',
  (type) => {
    // An extension of one byte.
    expect(() => unpackPlain(Buffer.of(0xd4, type, 0x01))).toThrow();
    // One with an array behind its id, as a part that others refer to has.
    expect(() => unpackPlain(Buffer.of(0xd6, type, 0, 0, 0, 1, 0x90))).toThrow();
  },
);

test('of what a client sends plain data is read, and whatever else the library would obey is refused', () => {
  const text = 'é'.repeat(70_000);
  const plain = {
    ...{
      none: null,
      yes: true,
      small: 7,
      negative: -7,
      byte: 200,
      word: 60_000,
      long: 4_000_000_000,
      part: 0.5,
    },
    ...{ minus: -200, less: -60_000, least: -2_000_000_000, short: 'a', medium: text.slice(0, 100), text },
    ...{ bytes: Buffer.of(0xd4, 0x72, 0x40), many: Buffer.alloc(300, 0xd4), list: [1, [2], { three: 3 }] },
    ...{ array: Array.from({ length: 40 }, (_, at) => at), huge: Number.MAX_SAFE_INTEGER },
    map: Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`k${at}`, at])),
  };
  expect(unpackSent(packPlain(plain))).toEqual(plain);
  // Definitions of records, of one byte and of two: the names of the fields, then their values.
  const fields = Buffer.concat([Buffer.of(0x92), Buffer.from('\xa1a\xa1b', 'latin1'), Buffer.of(1, 2)]);
  for (const head of [
    [0xd4, 0x72, 0x40],
    [0xd5, 0x72, 0x40, 0x01],
  ]) {
    const sent = Buffer.concat([Buffer.of(0x91), Buffer.from(head), fields]);
    expect(unpackPlain(sent)).toEqual([{ a: 1, b: 2 }]);
    expect(() => unpackSent(sent)).toThrow('no plain data');
  }
  for (const head of [0xc1, 0xc7, 0xc8, 0xc9, 0xd6, 0xd7, 0xd8])
    expect(() => unpackSent(Buffer.of(head, 1, 1, 1, 1))).toThrow('no plain data');
  const cut = packPlain(plain);
  for (const size of [0, 1, 100, cut.length - 1]) expect(() => unpackSent(cut.subarray(0, size))).toThrow();
});
