// Today's boto3 drives every action of IAM about roles, policies, MFA devices and simulations, and reads the answers. The checks are
// functions of boto3_policies_checks.py; here each becomes a test.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ATTACHMENT_ACTIONS } from '../../src/gateway/identity-api/attachments.ts';
import { AUTHORIZATION_DETAIL_ACTIONS } from '../../src/gateway/identity-api/authorization-details.ts';
import { BOUNDARY_ACTIONS } from '../../src/gateway/identity-api/boundaries.ts';
import { INLINE_POLICY_ACTIONS } from '../../src/gateway/identity-api/inline-policies.ts';
import { MFA_DEVICE_ACTIONS } from '../../src/gateway/identity-api/mfa-devices.ts';
import { POLICY_ACTIONS } from '../../src/gateway/identity-api/policies.ts';
import { ROLE_ACTIONS } from '../../src/gateway/identity-api/roles.ts';
import { SIMULATION_ACTIONS } from '../../src/gateway/identity-api/simulate.ts';
import { type ClientWorld, openWorld, PROGRAMS } from '../support/clients/clients.ts';

const SCRIPT = join(import.meta.dirname, 'boto3_policies_checks.py');
const NAMES = [...readFileSync(SCRIPT, 'utf8').matchAll(/^def check_(\w+)/gm)].map((match) => match[1] ?? '');
/** Of all checks together. */
const RUN_TIMEOUT_MS = 400_000;

let world: ClientWorld;
const errors = new Map<string, string | null>();
let operations: readonly string[] = [];

beforeAll(async () => {
  world = await openWorld({ transport: 'http' });
  const ran = await world.run(PROGRAMS.pypiPython, [SCRIPT, world.server.endpoint], {
    env: world.awsVariables(),
  });
  type Line = { name: string; error: string | null } | { operations: string[] };
  for (const line of ran.stdout
    .trim()
    .split('\n')
    .map((text): Line => JSON.parse(text))) {
    if ('operations' in line) operations = line.operations;
    else errors.set(line.name, line.error);
  }
}, RUN_TIMEOUT_MS);
afterAll(() => world.close());

test.each(NAMES)('%s', (name) => {
  expect(errors.has(name), 'the script reported this check').toBe(true);
  expect(errors.get(name)).toBeNull();
});

test('every action was called', () => {
  const actions = [
    ...ROLE_ACTIONS,
    ...POLICY_ACTIONS,
    ...INLINE_POLICY_ACTIONS,
    ...ATTACHMENT_ACTIONS,
    ...BOUNDARY_ACTIONS,
    ...MFA_DEVICE_ACTIONS,
    ...AUTHORIZATION_DETAIL_ACTIONS,
    ...SIMULATION_ACTIONS,
  ];
  const called = new Set(operations);
  expect(actions.map(({ name }) => name).filter((name) => !called.has(name))).toEqual([]);
});
