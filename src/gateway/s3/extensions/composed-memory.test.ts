// Pieces of a composition count in the memory for bodies of whoever asks for it; what they take is tested in
// objects/compose-object.test.ts.
import { expect, test, vi } from 'vitest';
import { openGatewayWorld } from '../../../../tests/support/objects/gateway-world.ts';
import { send } from '../../../../tests/support/servers/raw-s3.ts';
import { MemoryTooSmall } from '../../../objects/object-store.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';

test('a composition counts in the memory for bodies', async () => {
  const world = await openGatewayWorld();
  try {
    const me = { ...(await world.makeAccount('me')), endpoint: world.endpoint };
    await send(me, { method: 'PUT', path: '/pieces' });
    await send(me, { method: 'PUT', path: '/pieces/one', body: Buffer.from('one') });
    const compose = world.store.composeObject;
    const counted: [said: number | undefined, held: number][] = [];
    vi.spyOn(world.store, 'composeObject').mockImplementation(async (input) => {
      counted.push([input.countedBytes, world.heldBytes()]);
      if (counted.length === 1) throw new MemoryTooSmall(700_000);
      return compose(input);
    });
    const body = Buffer.from('<ComposeRequest><Component><Key>one</Key></Component></ComposeRequest>');
    const { status } = await send(me, { method: 'PUT', path: '/pieces/all?compose=', body });
    expect(status).toBe(200);
    // Its document counts, too; the first memory is given back before there is more.
    const [[, first = 0] = [], [, second = 0] = []] = counted;
    expect(counted.map(([said]) => said)).toEqual([LIMITS.sourceMemoryBytes, 700_000]);
    expect(second - first).toBe(700_000 - LIMITS.sourceMemoryBytes);
    expect(world.heldBytes()).toBe(0);
  } finally {
    await world.close();
  }
});

test('a repeated request whose first one has ended while it waited for memory gets its answer, and composes nothing', async () => {
  const world = await openGatewayWorld();
  try {
    const me = { ...(await world.makeAccount('me')), endpoint: world.endpoint };
    await send(me, { method: 'PUT', path: '/pieces' });
    const { headers } = await send(me, { method: 'PUT', path: '/pieces/log', body: Buffer.from('one') });
    const component = `<Component><Key>log</Key><IfMatch>${headers.etag}</IfMatch></Component>`;
    const compose = () =>
      send(me, {
        method: 'PUT',
        path: '/pieces/log?compose=',
        headers: { 'x-svc-idempotency-token': 'token' },
        body: Buffer.from(`<ComposeRequest>${component.repeat(2)}</ComposeRequest>`),
      });
    const composed = vi.spyOn(world.store, 'composeObject');
    const { withMemory } = world.store;
    const firstOnes: Awaited<ReturnType<typeof compose>>[] = [];
    const waits = vi.spyOn(world.store, 'withMemory');
    waits.mockImplementationOnce(async (needs, work) => {
      waits.mockImplementationOnce(async () => {
        firstOnes.push(await compose());
        throw new AppError('SlowDown');
      });
      firstOnes.push(await compose());
      return withMemory(needs, work);
    });
    const last = await compose();
    for (const { status, headers } of [...firstOnes, last])
      expect([status, headers.etag]).toEqual([200, last.headers.etag]);
    expect([firstOnes.length, composed.mock.calls.length]).toEqual([2, 1]);
  } finally {
    await world.close();
  }
});
