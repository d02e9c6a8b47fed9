// The network between the processes of a cluster on one machine, so that it can be cut: every node is told to the others
// by the address of a proxy, and every process reaches etcd by one of its own. A cut takes nothing away and breaks no
// connection: bytes wait until it is healed, as they do behind a switch that is gone, and arrive late or never.
// Who has opened a connection is asked of the kernel (/proc), once there is a cut: the processes know nothing of it.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer, connect as openSocket, type Server, type Socket } from 'node:net';

const HOST = '127.0.0.1';
/** A client that is no process of the cluster: a test that asks for the status. Never cut off. */
const OUTSIDE = 'outside';

export interface Proxied {
  /** Whom it leads to. */
  name: string;
  /** Only from here; default: from the process that the kernel names. */
  from?: string;
  /** Where the target listens; asked for each connection. */
  port(): number;
}

export interface ClusterNetwork {
  /** Opens a proxy; resolves with its port. */
  lead(proxied: Proxied): Promise<number>;
  /** Nothing goes from any of `from` to any of `to` any more, on old connections and new ones. */
  cutOneWay(from: readonly string[], to: readonly string[]): void;
  /** In both directions. */
  cut(one: readonly string[], other: readonly string[]): void;
  /** All cuts. */
  heal(): void;
  close(): Promise<void>;
}

/** A connection: what the opener says and what the target says. */
interface Line {
  /** Undefined: nobody has asked. */
  opener: string | undefined;
  readonly target: string;
  readonly proxyPort: number;
  readonly near: Socket;
  far: Socket | undefined;
  /** One side has ended it. */
  isEnding: boolean;
}

/** `processes`: ids by name, asked when a cut has to know whose connections there are. */
export function createClusterNetwork(processes: () => ReadonlyMap<string, number>): ClusterNetwork {
  const cuts = new Set<string>();
  const lines = new Set<Line>();
  const servers: Server[] = [];
  const isCut = (from: string | undefined, to: string | undefined) => cuts.has(`${from}>${to}`);

  const accept = (near: Socket, proxied: Proxied, proxyPort: number) => {
    near.on('error', () => {});
    near.pause();
    const line: Line = {
      opener: proxied.from,
      target: proxied.name,
      proxyPort,
      near,
      far: undefined,
      isEnding: false,
    };
    lines.add(line);
    if (cuts.size > 0) nameOpeners(lines, processes());
    near.on('close', () => end(line));
    if (near.destroyed) end(line);
    else flow(line, proxied);
  };

  const flow = (line: Line, proxied?: Proxied) => {
    const { near, opener, target } = line;
    const isBarred = { out: isCut(opener, target), back: isCut(target, opener) };
    if (line.isEnding && !isBarred.out && !isBarred.back) return end(line);
    if (line.far === undefined) {
      // The opener waits as for an answer to its first packet.
      if (isBarred.out || isBarred.back) return void openers.set(line, proxied);
      const wanted = proxied ?? openers.get(line);
      openers.delete(line);
      if (wanted !== undefined) join(line, wanted.port());
      return;
    }
    if (isBarred.out) near.pause();
    else near.resume();
    if (isBarred.back) line.far.pause();
    else line.far.resume();
  };
  /** Connections that were begun while there was no way. */
  const openers = new Map<Line, Proxied | undefined>();

  const join = (line: Line, port: number) => {
    const far = openSocket({ host: HOST, port });
    line.far = far;
    far.setNoDelay(true);
    line.near.setNoDelay(true);
    far.on('error', () => {});
    far.on('close', () => end(line));
    pour(line.near, far, () => isCut(line.opener, line.target));
    pour(far, line.near, () => isCut(line.target, line.opener));
    flow(line);
  };

  const end = (line: Line) => {
    line.isEnding = true;
    // The end does not arrive either.
    if (isCut(line.opener, line.target) || isCut(line.target, line.opener)) return;
    lines.delete(line);
    openers.delete(line);
    line.near.destroy();
    line.far?.destroy();
  };

  const again = () => {
    for (const line of [...lines]) flow(line);
  };

  return {
    async lead(proxied) {
      let proxyPort = 0;
      const server = createServer((near) => accept(near, proxied, proxyPort));
      servers.push(server);
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(0, HOST, resolve);
      });
      proxyPort = (server.address() as { port: number }).port;
      return proxyPort;
    },
    cutOneWay(from, to) {
      nameOpeners(lines, processes());
      for (const one of from) for (const other of to) cuts.add(`${one}>${other}`);
      again();
    },
    cut(one, other) {
      this.cutOneWay(one, other);
      this.cutOneWay(other, one);
    },
    heal() {
      cuts.clear();
      again();
    },
    async close() {
      cuts.clear();
      for (const line of [...lines]) end(line);
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

/** Like pipe, but what a cut has stopped no drained buffer sets going again. */
function pour(from: Socket, to: Socket, isStopped: () => boolean): void {
  from.on('data', (bytes: Buffer) => {
    if (!to.write(bytes)) from.pause();
  });
  to.on('drain', () => {
    if (!isStopped()) from.resume();
  });
  from.on('end', () => to.end());
}

/** Finds out whose the connections are of which that is not known yet. */
function nameOpeners(lines: Iterable<Line>, processes: ReadonlyMap<string, number>): void {
  const unnamed = [...lines].filter(({ opener }) => opener === undefined);
  if (unnamed.length === 0) return;
  const inodes = inodesByPorts(readFileSync('/proc/net/tcp', 'latin1'));
  const owners = new Map<string, string>();
  for (const [name, pid] of processes) for (const inode of socketsOf(pid)) owners.set(inode, name);
  for (const line of unnamed) {
    const inode = inodes.get(`${line.near.remotePort}>${line.proxyPort}`);
    line.opener = owners.get(inode ?? '') ?? OUTSIDE;
  }
}

/** Inodes of the sockets that a process has open; none when it is gone. */
function socketsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  const files = orElse(() => readdirSync(folder), []);
  return files.flatMap((file) => {
    // It may have been closed meanwhile.
    const target = orElse(() => readlinkSync(`${folder}/${file}`), '');
    const [, inode] = /^socket:\[(\d+)\]$/.exec(target) ?? [];
    return inode === undefined ? [] : [inode];
  });
}

function orElse<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** Of `LOCAL>REMOTE`, in ports, as the kernel lists it: `sl local rem st queues timer retries uid timeout inode`. */
function inodesByPorts(table: string): Map<string, string> {
  const portOf = (address = '') => Number.parseInt(address.split(':')[1] ?? '', 16);
  return new Map(
    table.split('\n').flatMap((line) => {
      const [, local, remote, , , , , , , inode] = line.trim().split(/\s+/);
      return inode === undefined ? [] : [[`${portOf(local)}>${portOf(remote)}`, inode] as const];
    }),
  );
}
