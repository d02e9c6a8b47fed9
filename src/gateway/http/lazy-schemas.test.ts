import { expect, test } from 'vitest';
import { nextTurn } from '../../base/async/next-turn.ts';
import { createLazySchemas } from './lazy-schemas.ts';

test('a schema is compiled when it is needed first, and all others one in a turn', async () => {
  const { buildValidator, compileAll } = createLazySchemas();
  const compile = buildValidator({}, { customOptions: { coerceTypes: false } });
  const compiled = new Set<string>();
  const checkOf = (name: string) =>
    compile({
      schema: {
        get type() {
          compiled.add(name);
          return 'string';
        },
      },
    } as never);
  const [first] = ['first', 'second', 'third', 'fourth'].map((name) => ({ name, check: checkOf(name) }));
  expect(compiled.size).toBe(0);
  expect(first?.check(1)).toBe(false);
  expect(first?.check.errors).toMatchObject([{ keyword: 'type' }]);
  expect(first?.check('text')).toBe(true);
  expect(first?.check.errors).toBe(null);
  expect([...compiled]).toEqual(['first']);
  const done = compileAll();
  await nextTurn();
  expect(compiled.size).toBeLessThan(4);
  await done;
  expect([...compiled]).toEqual(['first', 'second', 'third', 'fourth']);
});
