// The reason why etcd refused, in words for its operator: the client wraps it in words of gRPC.

/** Before what a server of etcd itself has said. */
const ETCD_PREFIX = 'etcdserver: ';
/** As "14 UNAVAILABLE: ". */
const STATUS = /^\d+ [A-Z_]+: /;
const UNCONNECTED =
  /^No connection established\.(?: Last error: (?:Error: )?(.*?))?(?:\. Resolution note:.*)?$/;

/** One line: `etcd refuses: ...` for what it has answered, else `etcd does not answer: ...`. */
export function describeEtcdFailure(error: unknown): string {
  const message = (error instanceof Error ? error.message : String(error)).replace(STATUS, '').trim();
  const at = message.indexOf(ETCD_PREFIX);
  if (at !== -1) return `etcd refuses: ${message.slice(at + ETCD_PREFIX.length)}`;
  const unconnected = UNCONNECTED.exec(message);
  return `etcd does not answer: ${unconnected === null ? message : (unconnected[1] ?? 'it cannot be reached')}`;
}
