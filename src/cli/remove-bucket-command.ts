// holdfast rb: deletes a bucket, with --force all that is in it (service 4.1). A bucket that was deleted by force is
// gone at once; what was in it is freed by a job of the server, which the operator can watch.
import { Refusal } from '../base/refusal.ts';
import { type CliContext, type ConnectOptions, connectS3, connectWatcher } from './connect.ts';
import { formatAnswer, formatCount } from './format.ts';
import { parseBucketAddress } from './object-address.ts';
import { type Emptying, watchEmptying } from './watch-emptying.ts';

/** As shells have it of what SIGINT has ended. */
const INTERRUPTED = 130;

export interface RemoveBucketOptions extends ConnectOptions {
  /** Also when there are objects in it; refused whole when one of them must be kept. */
  force?: boolean;
  /** With `force`: until what was in it is freed, where these keys may see that. Default true. */
  wait?: boolean;
  /** Ends the waiting, and nothing in the server. */
  signal?: AbortSignal;
}

export async function removeBucket(
  context: CliContext,
  text: string,
  options: RemoveBucketOptions,
): Promise<void> {
  const { force = false, wait = true, signal } = options;
  const bucket = parseBucketAddress(text);
  const client = await connectS3(context, options);
  const query: Record<string, string> = force ? { force_delete: 'true' } : {};
  const sentAtMs = context.nowMs();
  await unlessStopped(
    client.send({ method: 'DELETE', bucket, query }),
    signal,
    `it is not known what becomes of ${bucket}: a deletion that has begun goes on`,
  );
  if (!force) return context.print(formatAnswer(options, { bucket }, () => `${bucket} is gone`));
  const emptying = wait ? await watch(context, { bucket, sentAtMs }, options) : undefined;
  const isFreed = emptying?.kind === 'emptied';
  const answer = { bucket, isFreed, ...(isFreed && { versionCount: emptying.versionCount }) };
  context.print(formatAnswer(options, answer, () => `${bucket} is gone; ${describe(emptying)}`));
}

async function watch(
  context: CliContext,
  { bucket, sentAtMs }: { bucket: string; sentAtMs: number },
  { signal, ...options }: RemoveBucketOptions,
): Promise<Emptying> {
  const hint = `${bucket} is gone, and its data goes on being freed; \`holdfast jobs\` tells the operator how far`;
  return watchEmptying(context, await connectWatcher(context, options), {
    bucket,
    sentAtMs,
    wait: (work) => unlessStopped(work, signal, hint),
  });
}

/** undefined: nobody has looked. */
function describe(emptying: Emptying | undefined): string {
  const background = 'its data is freed in the background';
  if (emptying === undefined) return `${background}, and \`holdfast jobs\` tells the operator how far it is`;
  if (emptying.kind === 'emptied') return `versions freed: ${formatCount(emptying.versionCount)}`;
  if (emptying.kind === 'denied') return `${background}, which the operator's keys alone can watch`;
  return `${background}; how far it is cannot be seen now`;
}

/** As `work`; a Refusal that says `hint` once nobody wants to wait. */
async function unlessStopped<T>(work: Promise<T>, signal: AbortSignal | undefined, hint: string): Promise<T> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const stop = () => reject(new Refusal(`interrupted: ${hint}`, INTERRUPTED));
  signal?.addEventListener('abort', stop);
  if (signal?.aborted) stop();
  try {
    return await Promise.race([work, stopped]);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}
