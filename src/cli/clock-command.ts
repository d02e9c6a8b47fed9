// holdfast clock accept: the operator's word on a clock that has jumped. It is said of the jump that was shown, so that a larger
// one that has come meanwhile is not accepted with it.
import { Refusal } from '../base/refusal.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatDuration } from './format.ts';

const WHOLE_NUMBER = /^\d{1,15}$/;

/** Without `jumpMs` it shows what would be accepted. Returns the exit code: 1 while a jump waits. */
export async function acceptClock(
  context: CliContext,
  { jumpMs: text, ...options }: ConnectOptions & { jumpMs?: string },
): Promise<number> {
  if (text !== undefined && !WHOLE_NUMBER.test(text))
    throw new Refusal('--jump-ms takes a whole number of milliseconds');
  const client = await connect(context, options);
  if (text === undefined) {
    const answer = (await client.call('GET', '/clock')) as { jumpMs: number };
    context.print(formatAnswer(options, answer, () => describeJump(answer.jumpMs)));
    return answer.jumpMs === 0 ? 0 : 1;
  }
  const body = { jumpMs: Number(text) };
  const answer = (await client.call('POST', '/clock/accept', body)) as { acceptedJumpMs: number };
  context.print(formatAnswer(options, answer, () => describeAccepted(answer.acceptedJumpMs)));
  return 0;
}

const NOTHING = 'There was nothing to accept: the clock has not jumped.';

function describeJump(jumpMs: number): string {
  if (jumpMs === 0) return NOTHING;
  return `The clock has jumped ${formatDuration(jumpMs)} ahead. If it is right now: holdfast clock accept --jump-ms ${jumpMs}`;
}

function describeAccepted(jumpMs: number): string {
  if (jumpMs === 0) return NOTHING;
  return `The jump of ${formatDuration(jumpMs)} is accepted: what has become too old is removed again.`;
}

/** In one line of the status. */
export function describeClock(jumpMs: number): string {
  if (jumpMs === 0) return 'trusted';
  return `jumped ${formatDuration(jumpMs)} ahead; nothing is removed because of its age until \`holdfast clock accept --jump-ms ${jumpMs}\``;
}
