// Reading and writing the largest document of lifecycle rules: in short steps. What the document may say is tested by its
// operations (tests/api).
import { expect, test } from 'vitest';
import { finishAtOnce } from '../../../base/async/steps.ts';
import { parseXml } from '../../../base/xml/parse-xml.ts';
import type { LifecycleRule } from '../../../types/lifecycle.ts';
import { LIMITS } from '../../../types/limits.ts';
import { lifecycleDocument, readRules } from './lifecycle-xml.ts';

const TAGS = Array.from({ length: LIMITS.tagsMax }, (_, at) => ({ key: `key-${at}`, value: 'value' }));
const RULES: LifecycleRule[] = Array.from({ length: LIMITS.lifecycleRulesMax }, (_, at) => ({
  id: `r${at}`,
  isEnabled: true,
  filter: { tags: TAGS },
  expiration: { days: 1 },
}));

test('a thousand rules with ten tags are written in turns, and read in steps of fifty', async () => {
  let turns = 0;
  const context = {
    async turn() {
      turns++;
    },
  };
  const text = await lifecycleDocument(context, { rules: RULES });
  expect(turns).toBe(Math.floor(text.length / (64 * 1024)));
  expect(turns).toBeGreaterThan(5);
  const bounds = { depthMax: LIMITS.xmlDepthMax };
  const root = parseXml(Buffer.from(text), bounds);
  const reading = readRules(root);
  let steps = 1;
  for (; reading.next().done !== true; steps++);
  expect(steps).toBe(RULES.length / 50);
  expect(finishAtOnce(readRules(root)).map(({ filter }) => filter?.tags)).toEqual(RULES.map(() => TAGS));
});
