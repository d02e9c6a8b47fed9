// The examples of a page of the documentation, so that a test runs exactly those.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../../src/base/assert.ts';
import { ROOT } from './root.ts';

/** The first block of code in the section with this heading. */
export function exampleOf(page: string, heading: string): string {
  const text = readFileSync(join(ROOT, 'docs', page), 'utf8');
  const from = text.indexOf(`\n### ${heading}\n`);
  const [, code] = must(/```\w+\n([\s\S]*?)```/.exec(text.slice(from)), `an example of ${heading}`);
  return must(code, 'a block has its code');
}
