import { expect, test } from 'vitest';

test('the numbers fit to one another', async () => {
  await expect(import('./limit-relations.ts')).resolves.toBeDefined();
});
