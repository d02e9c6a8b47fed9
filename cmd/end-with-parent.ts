// A program that was started by a launcher ends with it: a launcher that is killed (kill -9) can pass on no signal, and
// its program would hold the port and the data folder for ever. They have a channel, which the kernel closes.

/** Where this process has a channel to its parent: does as with SIGTERM when the channel closes. */
export function endWithParent(): void {
  if (process.channel === undefined) return;
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  // It does not keep a program that has done its work.
  process.channel?.unref();
}
