// holdfast cluster certs as an operator meets it; what the certificates hold is cluster-certificates.test.ts's.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { COMPILE_CACHE, ROOT } from '../support/run/root.ts';

const MAIN = join(ROOT, 'cmd', 'main.ts');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-cluster-certs-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'cluster', 'certs', ...args], {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE },
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

test('makes the files and prints where they go; a second time it refuses', () => {
  const out = join(folder, 'new', 'authority');
  const args = ['--out', out, '--name', 'meta-1', '--host', '10.0.0.1', 'meta-1.example', '--host', '::1'];
  const { code, stdout } = run(...args);
  expect(code).toBe(0);
  expect(stdout).toContain(`Made the authority of the cluster: ${join(out, 'ca-cert.pem')}`);
  expect(stdout).toContain(`The node needs these two and ${join(out, 'ca-cert.pem')}.`);
  const files = ['ca-cert.pem', 'ca-key.pem', 'meta-1-cert.pem', 'meta-1-key.pem'];
  expect(readdirSync(out).sort()).toEqual(files);
  expect(run(...args)).toEqual({
    code: 1,
    stdout: '',
    stderr: `holdfast: ${join(out, 'meta-1-cert.pem')} is there already; it is not written over\n`,
  });
});

test('explains in one line what is wrong with the folder', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const { code, stderr } = run('--out', join(file, 'inner'), '--name', 'a', '--host', 'a');
  expect(code).toBe(1);
  expect(stderr).toMatch(/^holdfast: ENOTDIR.*\n$/);
});

test.each([
  [['--name', 'a', '--host', 'a'], '--out'],
  [['--out', 'x', '--host', 'a'], '--name'],
  [['--out', 'x', '--name', 'a'], '--host'],
])('%j lacks %s', (args, missing) => {
  const { code, stderr } = run(...args);
  expect(code).toBe(1);
  expect(stderr).toContain(`required option '${missing}`);
});
