import { createSecretKey } from 'node:crypto';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { createSeededRandom } from '../../tests/support/run/simulated.ts';
import { createKeyring } from '../platform/memory/memory-keyring.ts';
import { AppError } from '../types/errors.ts';
import { judgeKey, unwrapByCustomer, wrapByCustomer } from './customer-keys.ts';
import { createObjectKeys } from './object-keys.ts';

const keyOf = (fill: number) => createSecretKey(Buffer.alloc(32, fill));
const random = createSeededRandom(5);
const kek = random.bytes(32);
const [mine, others] = [keyOf(7), keyOf(8)];

test('a key opens what it has wrapped, and no other key does', () => {
  const wrapped = wrapByCustomer(kek, { customerKey: mine, random });
  expect(unwrapByCustomer(wrapped, mine)).toEqual(Buffer.from(kek));
  expect(unwrapByCustomer(wrapped, others)).toBeUndefined();
  const swapped = { ...wrapped, keyId: wrapByCustomer(kek, { customerKey: mine, random }).keyId };
  expect(unwrapByCustomer(swapped, mine)).toBeUndefined();
});

test('tells a key from another, from none, and from one that is not needed', () => {
  const wrapped = wrapByCustomer(kek, { customerKey: mine, random });
  expect(judgeKey(wrapped, keyOf(7))).toBe('fits');
  expect(judgeKey(wrapped, others)).toBe('other');
  expect(judgeKey(wrapped, undefined)).toBe('missing');
  const masters = createKeyring().wrap(kek);
  expect(judgeKey(masters, undefined)).toBe('fits');
  expect(judgeKey(masters, mine)).toBe('needless');
});

test('two objects under one key have nothing visible in common', () => {
  const [a, b] = [0, 1].map(() => wrapByCustomer(kek, { customerKey: mine, random }));
  expect(a?.keyId.slice(0, 64)).not.toBe(b?.keyId.slice(0, 64));
  expect(a?.keyId.slice(64)).not.toBe(b?.keyId.slice(64));
  expect(a?.wrapped).not.toEqual(b?.wrapped);
  expect(JSON.stringify([a, b])).not.toContain(Buffer.alloc(32, 7).toString('hex').slice(0, 16));
});

test('nothing that prints a value prints a key', () => {
  expect(JSON.stringify({ customerKey: mine })).toBe('{"customerKey":{}}');
  expect(inspect(mine, { depth: 9, showHidden: true })).not.toMatch(/0?7,? 0?7|BwcH/);
});

test('a copy keeps the key-encryption key, and changes what wraps it', () => {
  const keys = createObjectKeys({ keyring: createKeyring(), random });
  const plain = keys.newKek();
  const sealed = keys.renewKek(plain.wrapped, { to: mine });
  expect(sealed.by).toBe('customer');
  expect(keys.openKek(sealed, mine)).toEqual(Buffer.from(plain.kek));
  const rekeyed = keys.renewKek(sealed, { from: mine, to: others });
  expect(keys.openKek(rekeyed, others)).toEqual(Buffer.from(plain.kek));
  expect(keys.judgeKey(rekeyed, mine)).toBe('other');
  const bare = keys.renewKek(rekeyed, { from: others });
  expect(bare.by).toBe('master');
  expect(keys.openKek(bare)).toEqual(Buffer.from(plain.kek));
});

test('nothing opens without its key, and opened keys are not cached', () => {
  const keys = createObjectKeys({ keyring: createKeyring(), random });
  const { wrapped } = keys.newKek(mine);
  keys.openKek(wrapped, mine);
  expect(() => keys.openKek(wrapped)).toThrow(AppError);
  expect(() => keys.openKek(wrapped, others)).toThrow(AppError);
  expect(() => keys.renewKek(wrapped)).toThrow(AppError);
});
