// Today's boto3 from PyPI with its default settings. The checks are functions of boto3_checks.py, run once per
// transport; here each becomes a test. Python's SDK sends checksums as trailers only over TLS. With the optional
// package awscrt, it also signs by other code and has two more checksum algorithms.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  type ClientWorld,
  openWorld,
  PROGRAMS,
  type Transport,
  testOver,
} from '../support/clients/clients.ts';
import { casesOf } from '../support/run/long-form.ts';

const SCRIPT = join(import.meta.dirname, 'boto3_checks.py');
const NAMES = [...readFileSync(SCRIPT, 'utf8').matchAll(/^def check_(\w+)/gm)].map((match) => match[1] ?? '');

/** Of all checks together. */
const RUN_TIMEOUT_MS = 400_000;

const RUNS = casesOf<{ transport: Transport; crt: 'with' | 'without' }>({
  short: [
    { transport: 'http', crt: 'without' },
    { transport: 'https', crt: 'with' },
  ],
  longOnly: [{ transport: 'https', crt: 'without' }],
});

describe.each(RUNS)('boto3 over $transport $crt awscrt', ({ transport, crt }) => {
  const test = testOver(transport);
  let world: ClientWorld;
  const errors = new Map<string, string | null>();

  beforeAll(async () => {
    world = await openWorld({ transport, settings: { domain: 's3.localhost' } });
    const ran = await world.run(PROGRAMS.pypiPython, [SCRIPT, world.server.endpoint], {
      env: { ...world.awsVariables(), ...(crt === 'without' && { BOTO_DISABLE_CRT: 'true' }) },
    });
    for (const line of ran.stdout.trim().split('\n')) {
      const { name, error } = JSON.parse(line) as { name: string; error: string | null };
      errors.set(name, error);
    }
  }, RUN_TIMEOUT_MS);
  afterAll(() => world.close());

  test.each(NAMES)('%s', (name) => {
    expect(errors.has(name), 'the script reported this check').toBe(true);
    expect(errors.get(name)).toBeNull();
  });
});
