import { expect, test } from 'vitest';
import { createKeyring } from '../../platform/memory/memory-keyring.ts';
import { systemRandom } from '../../platform/system-clock.ts';
import { signerOf } from './principal.ts';
import { createSessions, type Session } from './sessions.ts';

const SESSION = {
  accessKey: 'ASIA0000000000000000',
  secretKey: 'secret',
  id: 'root',
  issuer: 'AKIA0000000000000000',
  issuedAtMs: 1,
  expiresAtMs: 2,
} as Session;

test('a token opens to the session that it was made of', () => {
  const sessions = createSessions({ keyring: createKeyring(), random: systemRandom });
  expect(sessions.open(sessions.seal(SESSION))).toEqual(SESSION);
});

test('the end of its master key ends a session, also one that was used before', async () => {
  const keyring = createKeyring();
  const sessions = createSessions({ keyring, random: systemRandom });
  const [used, unused] = [sessions.seal(SESSION), sessions.seal(SESSION)];
  const before = keyring.activeKeyId;
  sessions.open(used);
  await keyring.addKey();
  expect(sessions.open(used)).toEqual(SESSION);
  await keyring.removeKey(before);
  for (const token of [used, unused]) expect(() => sessions.open(token)).toThrow('provided token');
});

test('a token of parts that unfold is refused, before anything of it is unfolded', () => {
  const sessions = createSessions({ keyring: createKeyring(), random: systemRandom });
  // Of msgpackr: an array with an id, which the next one has twice.
  const level = (id: number) => [
    0xd6,
    0x69,
    0,
    0,
    0,
    id,
    0x92,
    0xd6,
    0x70,
    0,
    0,
    0,
    id - 1,
    0xd6,
    0x70,
    0,
    0,
    0,
    id - 1,
  ];
  const bytes = Buffer.from([0x91, ...Array.from({ length: 300 }, (_, at) => level((at % 250) + 1)).flat()]);
  expect(() => sessions.open(bytes.toString('base64'))).toThrow('provided token');
});

test('sessions share as one signer: those of a key with the key, those of a role with one another', () => {
  const signer = (accessKey: string, session?: Session, authType: 'AuthHeader' | 'Form' = 'AuthHeader') =>
    signerOf({ accessKey, authType, principal: { id: session?.id ?? 'root', ...(session && { session }) } });
  const { issuer } = SESSION;
  const role = { ...SESSION, kind: 'role', id: 'AROA0000000000000000' } as const;
  expect(signer('ASIA1', SESSION)).toBe(signer(issuer));
  expect(signer('ASIA1', role)).toBe(signer('ASIA2', { ...role, issuer: 'AKIA1' }));
  expect(signer('ASIA1', role)).not.toBe(signer('ASIA1', SESSION));
  expect(signer(issuer, undefined, 'Form')).not.toBe(signer(issuer));
});
