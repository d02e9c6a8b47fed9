// How a call to a shard ends that gets no reply. Not an error of the shard: those are replies.

export class CallBroken extends Error {
  override name = 'CallBroken';
  /** False: nothing has left this process, and nothing will be evaluated. True: the outcome is unknown. */
  readonly wasSent: boolean;

  constructor(message: string, options: { wasSent: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.wasSent = options.wasSent;
  }
}
