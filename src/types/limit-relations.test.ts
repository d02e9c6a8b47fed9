import { expect, test } from 'vitest';

test('the limits fit together', async () => {
  await expect(import('./limit-relations.ts')).resolves.toBeDefined();
});
