// The master keys: how a rotation stands, and beginning one.
import { defineEndpoint, readFields } from '../endpoint.ts';

export const getKeys = defineEndpoint({
  name: 'GetKeys',
  method: 'GET',
  path: '/keys',
  parse: ({ body }) => readFields(body, {}),
  run: async ({ rotation }) => ({ status: 200, json: rotation.progress() }),
});

export const rotateKeys = defineEndpoint({
  name: 'RotateKeys',
  method: 'POST',
  path: '/keys/rotate',
  parse: ({ body }) => readFields(body, {}),
  async run({ rotation, wakeRotation }) {
    await rotation.begin();
    wakeRotation();
    return { status: 202, json: rotation.progress() };
  },
});
