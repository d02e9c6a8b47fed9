// Decisions over HTTP: rules see the facts of the request and the stored tags, and the operator sees which rule refused.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import { createAuthorizer, RULES, type Rule } from '../../policy/authorize.ts';

/** Keeps what is tagged as kept from being deleted, but for programs that say they are the archive's. */
const keepTagged: Rule = {
  name: 'keep-tagged',
  judge({ action, facts, objectTags }) {
    if (action !== 's3:DeleteObject' || facts.header('user-agent') === 'archive') return undefined;
    return objectTags().then((tags) =>
      tags.some(({ key, value }) => key === 'keep' && value === 'yes') ? 'deny' : undefined,
    );
  },
  mayAllow: () => false,
};

let world: GatewayWorld;
beforeAll(async () => {
  world = await openGatewayWorld({ deps: { authorizer: createAuthorizer([...RULES, keepTagged]) } });
});
afterAll(() => world.close());

test('access to an object depends on its stored tags and the request, and the log names the deciding rule', async () => {
  const owner = await world.makeAccount('owner');
  const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
    send({ ...owner, endpoint: world.endpoint }, { method, path, headers });
  await ask('PUT', '/kept');
  await ask('PUT', '/kept/tagged', { 'x-amz-tagging': 'keep=yes' });
  await ask('PUT', '/kept/plain');
  expect((await ask('DELETE', '/kept/plain')).status).toBe(204);
  expect((await ask('DELETE', '/kept/tagged')).status).toBe(403);
  expect(world.requests().at(-1)).toMatchObject({
    errorCode: 'AccessDenied',
    refusedAction: 's3:DeleteObject',
    refusedResource: 'arn:aws:s3:::kept/tagged',
    refusedBy: 'keep-tagged',
  });
  expect((await ask('DELETE', '/kept/tagged', { 'user-agent': 'archive' })).status).toBe(204);
});

test('a request that no rule allows is refused with that reason', async () => {
  const [owner, other] = [await world.makeAccount('one'), await world.makeAccount('another')];
  await send({ ...owner, endpoint: world.endpoint }, { method: 'PUT', path: '/ones' });
  const answer = await send({ ...other, endpoint: world.endpoint }, { method: 'GET', path: '/ones' });
  expect(answer.status).toBe(403);
  expect(world.requests().at(-1)).toMatchObject({
    refusedAction: 's3:ListBucket',
    refusedBy: 'no rule allows it',
  });
});
