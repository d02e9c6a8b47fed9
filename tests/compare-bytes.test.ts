import { expect, test } from 'vitest';

const MiB = 1024 * 1024;

test('bytes are compared as such, also within others', () => {
  const usage = process.cpuUsage();
  const [same, other] = [Buffer.alloc(MiB, 1), Buffer.alloc(MiB, 1)];
  expect({ bodies: [same] }).toEqual({ bodies: [other] });
  // By vitest itself it takes some seconds.
  const { user } = process.cpuUsage(usage);
  expect(user).toBeLessThan(500_000);
  expect({ bodies: [Buffer.of(1, 2)] }).not.toEqual({ bodies: [Buffer.of(1, 3)] });
  expect(Buffer.of(1, 2)).not.toEqual(Buffer.of(1, 2, 3));
  expect(Buffer.of(1, 2)).not.toStrictEqual(Uint8Array.of(1, 2));
});
