// The operator's word on a clock that has jumped while the server was off (protocol R19).
import { defineEndpoint, readFields } from '../endpoint.ts';

export const acceptClock = defineEndpoint({
  name: 'AcceptClock',
  method: 'POST',
  path: '/clock/accept',
  parse: ({ body }) => readFields(body, {}),
  async run({ timeJumps }) {
    const acceptedJumpMs = timeJumps.unacceptedMs();
    await timeJumps.accept();
    return { status: 200, json: { acceptedJumpMs } };
  },
});
