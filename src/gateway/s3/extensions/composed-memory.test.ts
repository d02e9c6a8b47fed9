// Pieces of a composition count in the memory for bodies of whoever asks for it; what they take is tested in
// objects/compose-object.test.ts.
import { expect, test, vi } from 'vitest';
import { openGatewayWorld } from '../../../../tests/support/objects/gateway-world.ts';
import { send } from '../../../../tests/support/servers/raw-s3.ts';

test('a composition counts in the memory for bodies', async () => {
  const world = await openGatewayWorld();
  try {
    const me = { ...(await world.makeAccount('me')), endpoint: world.endpoint };
    await send(me, { method: 'PUT', path: '/pieces' });
    await send(me, { method: 'PUT', path: '/pieces/one', body: Buffer.from('one') });
    const compose = world.store.composeObject;
    const counted: (number | undefined)[] = [];
    vi.spyOn(world.store, 'composeObject').mockImplementation(async (input) => {
      counted.push(await input.withMemory?.(10_000, async () => world.heldBytes()), world.heldBytes());
      return compose(input);
    });
    const body = Buffer.from('<ComposeRequest><Component><Key>one</Key></Component></ComposeRequest>');
    const { status } = await send(me, { method: 'PUT', path: '/pieces/all?compose=', body });
    expect(status).toBe(200);
    const [during = 0, behind = 0] = counted;
    expect(during - behind).toBe(10_000);
  } finally {
    await world.close();
  }
});
