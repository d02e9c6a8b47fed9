// The commands that docs/operations.md tells an operator to type, so that a test types exactly those.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.ts';

/** Of the section with this heading: each line behind a prompt, without `holdfast` and a comment, in words. */
export function commandsOf(heading: string): string[][] {
  const text = readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8');
  const from = text.indexOf(`\n### ${heading}\n`);
  if (from === -1) throw new Error(`operations.md has no section "${heading}"`);
  const end = text.indexOf('\n##', from + 5);
  const body = end === -1 ? text.slice(from) : text.slice(from, end);
  return [...body.matchAll(/^\$ holdfast (.+)$/gm)].map(([, line = '']) =>
    line.replace(/\s+#.*$/, '').split(' '),
  );
}
