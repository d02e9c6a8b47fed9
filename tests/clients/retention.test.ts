// What must be kept and what must go, by today's boto3 and by the AWS CLI; the checks of boto3 are functions of
// retention_checks.py, and each becomes a test here.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientWorld, openWorld, PROGRAMS } from '../support/clients/clients.ts';

const SCRIPT = join(import.meta.dirname, 'retention_checks.py');
const NAMES = [...readFileSync(SCRIPT, 'utf8').matchAll(/^def check_(\w+)/gm)].map((match) => match[1] ?? '');

/** Of all checks together. */
const RUN_TIMEOUT_MS = 400_000;

let world: ClientWorld;
beforeAll(async () => {
  world = await openWorld({ transport: 'http' });
}, RUN_TIMEOUT_MS);
afterAll(() => world.close());

describe('boto3', () => {
  const errors = new Map<string, string | null>();

  beforeAll(async () => {
    const [endpoint = ''] = world.server.endpoint.split(',');
    const ran = await world.run(PROGRAMS.pypiPython, [SCRIPT, endpoint], { env: world.awsVariables() });
    for (const line of ran.stdout.trim().split('\n')) {
      const { name, error } = JSON.parse(line) as { name: string; error: string | null };
      errors.set(name, error);
    }
  }, RUN_TIMEOUT_MS);

  test.each(NAMES)('%s', (name) => {
    expect(errors.has(name), 'the script reported this check').toBe(true);
    expect(errors.get(name)).toBeNull();
  });
});

describe('the AWS CLI', () => {
  const BUCKET = 'cli-retention';
  const aws = async (...args: string[]) => {
    const ran = await world.run(
      PROGRAMS.pypiAws,
      ['--endpoint-url', world.server.endpoint, 's3api', ...args],
      {
        env: { ...world.awsVariables(), AWS_PAGER: '' },
      },
    );
    return (ran.stdout.trim() === '' ? {} : JSON.parse(ran.stdout)) as Record<string, unknown>;
  };
  const refused = async (...args: string[]) => {
    const ran = await world.run(
      PROGRAMS.pypiAws,
      ['--endpoint-url', world.server.endpoint, 's3api', ...args],
      {
        env: { ...world.awsVariables(), AWS_PAGER: '' },
        code: 255,
      },
    );
    return /\((\w+)\)/.exec(ran.stderr)?.[1];
  };

  test('locks a bucket, a version by a default, and a version by a hold, until it lets go', async () => {
    await aws('create-bucket', '--bucket', BUCKET, '--object-lock-enabled-for-bucket');
    const rule = { DefaultRetention: { Mode: 'GOVERNANCE', Days: 1 } };
    const configuration = JSON.stringify({ ObjectLockEnabled: 'Enabled', Rule: rule });
    const bucket = ['--bucket', BUCKET];
    await aws('put-object-lock-configuration', ...bucket, '--object-lock-configuration', configuration);
    expect(await aws('get-object-lock-configuration', ...bucket)).toMatchObject({
      ObjectLockConfiguration: { Rule: rule },
    });
    const { VersionId } = await aws('put-object', ...bucket, '--key', 'a');
    const version = [...bucket, '--key', 'a', `--version-id=${VersionId}`];
    expect(await aws('get-object-retention', ...version)).toMatchObject({
      Retention: { Mode: 'GOVERNANCE' },
    });
    expect(await refused('delete-object', ...version)).toBe('AccessDenied');
    await aws('put-object-legal-hold', ...version, '--legal-hold', 'Status=ON');
    expect(await refused('delete-object', ...version, '--bypass-governance-retention')).toBe('AccessDenied');
    await aws('put-object-legal-hold', ...version, '--legal-hold', 'Status=OFF');
    await aws('delete-object', ...version, '--bypass-governance-retention');
  });

  test('puts lifecycle rules, sees them, and sees when an object expires', async () => {
    const bucket = ['--bucket', BUCKET];
    const rules = [{ ID: 'r', Status: 'Enabled', Filter: { Prefix: 'logs/' }, Expiration: { Days: 30 } }];
    const configuration = ['--lifecycle-configuration', JSON.stringify({ Rules: rules })];
    await aws('put-bucket-lifecycle-configuration', ...bucket, ...configuration);
    expect(await aws('get-bucket-lifecycle-configuration', ...bucket)).toMatchObject({ Rules: rules });
    const { VersionId, Expiration } = await aws('put-object', ...bucket, '--key', 'logs/a');
    expect(Expiration).toContain('rule-id="r"');
    await aws('delete-bucket-lifecycle', ...bucket);
    const version = ['--key', 'logs/a', `--version-id=${VersionId}`];
    await aws('delete-object', ...bucket, ...version, '--bypass-governance-retention');
  });
});
