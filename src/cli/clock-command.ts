// holdfast clock accept: the operator's word on a clock that has jumped while the server was off.
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatDuration } from './format.ts';

export async function acceptClock(context: CliContext, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const answer = (await client.call('POST', '/clock/accept')) as { acceptedJumpMs: number };
  context.print(formatAnswer(options, answer, () => describeAccepted(answer.acceptedJumpMs)));
}

function describeAccepted(jumpMs: number): string {
  if (jumpMs === 0) return 'There was nothing to accept: the clock has not jumped.';
  return `The jump of ${formatDuration(jumpMs)} is accepted: what has become too old is removed again.`;
}

/** In one line of the status. */
export function describeClock(jumpMs: number): string {
  if (jumpMs === 0) return 'trusted';
  return `jumped ${formatDuration(jumpMs)} ahead while the server was off; nothing is removed because of its age until \`holdfast clock accept\``;
}
