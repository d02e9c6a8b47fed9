import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { checkAccountFields } from './account-rules.ts';
import { mintAccountId, mintCanonicalId, mintKeyPair } from './mint-keys.ts';

const random = { bytes: (sizeBytes: number) => randomBytes(sizeBytes) };

test('what is made up keeps the rules of what is given', () => {
  const seen = new Set<string>();
  for (let round = 0; round < 200; round++) {
    const keys = mintKeyPair(random);
    expect(keys.accessKey).toMatch(/^HF[A-Z0-9]{18}$/);
    expect(keys.secretKey).toMatch(/^[A-Za-z0-9]{40}$/);
    const canonicalId = mintCanonicalId(random);
    checkAccountFields({ ...keys, canonicalId });
    expect(mintAccountId(random)).toMatch(/^[1-9]\d{11}$/);
    seen.add(keys.accessKey).add(keys.secretKey).add(canonicalId);
  }
  expect(seen.size).toBe(600);
});

test('bytes that would favour some characters are thrown away', () => {
  const bytes = [255, 252, 251, 0];
  const keys = mintKeyPair({
    bytes: (sizeBytes) => Uint8Array.from({ length: sizeBytes }, (_, at) => bytes[at % 4] ?? 0),
  });
  // 36 characters: 252 is the first unfair byte; 251 is the last character, 0 the first.
  expect(keys.accessKey).toBe(`HF${'9A'.repeat(9)}`);
});
