import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));
const PRINT_LOADED =
  'data:text/javascript,process.on("exit", () => console.log(process.moduleLoadList.join("\\n")))';

test('a command that speaks HTTP does not load the client of fetch', () => {
  // Nobody listens there.
  const args = ['--import', PRINT_LOADED, MAIN, 'health', '--endpoint', 'http://127.0.0.1:1'];
  const loaded = spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout.split('\n');
  expect(loaded).toContain('NativeModule http');
  expect(loaded.filter((name) => name.includes('undici'))).toEqual([]);
});
