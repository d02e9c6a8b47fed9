import { Agent } from 'node:http';
import { expect, test } from 'vitest';
import { openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { createSignatureFailures } from './signature-failures.ts';

const wrong = () => {
  throw new AppError('SignatureDoesNotMatch');
};
const good = () => {};

test('wrong signatures of a key from an address make the two wait longer and longer, and nobody else', () => {
  const clock = createManualClock(0);
  const failures = createSignatureFailures({ clock });
  const attempt = (verify: () => void, address = 'here') => {
    try {
      failures.judge({ accessKey: 'key', address }, verify);
      return 'good';
    } catch (error) {
      return (error as AppError).code;
    }
  };
  for (let count = 0; count < LIMITS.wrongSignaturesFree; count++)
    expect(attempt(wrong)).toBe('SignatureDoesNotMatch');
  expect([attempt(good), attempt(wrong), attempt(good, 'elsewhere')]).toEqual([
    'AuthenticationLockout',
    'AuthenticationLockout',
    'good',
  ]);
  clock.advance(1000);
  expect([attempt(wrong), attempt(good)]).toEqual(['SignatureDoesNotMatch', 'AuthenticationLockout']);
  clock.advance(1999);
  expect(attempt(good)).toBe('AuthenticationLockout');
  clock.advance(1);
  expect([attempt(good), attempt(wrong), attempt(good)]).toEqual(['good', 'SignatureDoesNotMatch', 'good']);
});

test('over HTTP the key is refused at that address, also with its own secret', async () => {
  const world = await openGatewayWorld();
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const ask = async (secretKey: string) => {
    const access = { ...world.root, secretKey, endpoint: world.endpoint };
    const { body, status } = await send(access, { method: 'GET', path: '/', agent });
    return /<Code>(\w+)</.exec(String(body))?.[1] ?? status;
  };
  const wrongly = Array.from({ length: LIMITS.wrongSignaturesFree }, () => 'wrong');
  expect(new Set(await Promise.all(wrongly.map(ask)))).toEqual(new Set(['SignatureDoesNotMatch']));
  expect(await ask(world.root.secretKey)).toBe('AuthenticationLockout');
  agent.destroy();
  await world.close();
});
