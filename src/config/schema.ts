// The settings: one row each. Flag, environment variable, key of the JSON file, help text, validation and the type
// of the loaded value all follow from the row (names.ts, values.ts, load.ts, help.ts).
// A new setting is a new row; nothing else needs to change. Values are read and combined in load.ts, not here.
import { LIMITS } from '../types/limits.ts';
import type { SettingRow } from './setting-row.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

export const SETTINGS = [
  {
    key: 'dataDir',
    kind: 'path',
    default: './data',
    help: 'Folder of everything the server keeps. Created at the first start.',
  },
  {
    key: 'listen',
    kind: 'hostPort',
    default: '127.0.0.1:9000',
    help: 'Address and port to listen on. Port 0 takes a free one.',
  },
  {
    key: 'domain',
    kind: 'list',
    items: 'domainName',
    default: '',
    help: 'Base domains of virtual-host requests: BUCKET.DOMAIN is the bucket. Repeat or separate by commas.',
  },
  {
    key: 'publicNames',
    kind: 'list',
    items: 'publicName',
    default: '',
    help: 'Names (HOST or HOST:PORT) or URLs under which clients reach this server, beside the listening address.',
  },
  {
    key: 'trustedProxies',
    kind: 'list',
    items: 'networkRange',
    default: '',
    help: 'Addresses or CIDR ranges of proxies whose X-Forwarded-Host, -Proto and -For are believed.',
  },
  {
    key: 'signatureV2',
    kind: 'choice',
    choices: ['on', 'off'],
    default: 'on',
    help: 'Whether S3 requests may be signed by version 2 (HMAC-SHA1), as old backup clients still do.',
  },
  {
    key: 'sosapi',
    kind: 'choice',
    choices: ['on', 'off'],
    default: 'on',
    help: "Whether buckets show system.xml and capacity.xml of Veeam's Smart Object Storage API, with the room of the store.",
  },
  {
    key: 'tls.mode',
    kind: 'choice',
    choices: ['off', 'self-signed', 'files'],
    default: 'off',
    help: 'HTTPS with a certificate made here (self-signed), with your own (files), or plain HTTP (off).',
  },
  { key: 'tls.cert', kind: 'path', help: 'PEM file of the certificate and its chain, for mode files.' },
  { key: 'tls.key', kind: 'path', help: 'PEM file of the private key, for mode files.' },
  {
    key: 'tls.names',
    kind: 'list',
    items: 'hostName',
    default: '',
    help: 'More names or addresses for the self-signed certificate.',
  },
  {
    key: 'root.accessKey',
    kind: 'secret',
    help: 'Access key of the root account, fixed at the first start. Made up when absent.',
  },
  {
    key: 'root.secretKey',
    kind: 'secret',
    help: 'Secret key of the root account, fixed at the first start. Made up when absent.',
  },
  {
    key: 'log.level',
    kind: 'choice',
    choices: ['debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    help: 'Least severe log line to print. Requests are logged at info.',
  },
  {
    key: 'drainTimeout',
    kind: 'duration',
    default: '30s',
    min: 0,
    max: LIMITS.drainMaxMs,
    help: 'How long requests in flight may go on after a signal to stop.',
  },
  {
    key: 'requests.headerTimeout',
    kind: 'duration',
    default: '60s',
    min: SECOND,
    help: 'How long a client may take to send the headers of a request.',
  },
  {
    key: 'requests.idleTimeout',
    kind: 'duration',
    default: '5min',
    min: SECOND,
    help: 'How long a connection may stand still in the middle of a request.',
  },
  {
    key: 'requests.keepAliveTimeout',
    kind: 'duration',
    default: '75s',
    min: SECOND,
    help: 'How long an idle connection is kept for the next request.',
  },
  {
    key: 'requests.secretsOverHttp',
    kind: 'boolean',
    default: 'false',
    help: 'Take encryption keys of customers over plain HTTP from anywhere, not only over HTTPS, from this machine, or from a trusted proxy that says https.',
  },
  {
    key: 'api.getsPerMinute',
    kind: 'integer',
    default: '1000',
    min: 1,
    max: 1_000_000,
    help: 'GET requests that one API key may send to /api/v1 in a minute, on each gateway.',
  },
  {
    key: 'api.putsPerMinute',
    kind: 'integer',
    default: '100',
    min: 1,
    max: 1_000_000,
    help: 'PUT requests that one API key may send to /api/v1 in a minute, on each gateway.',
  },
  {
    key: 'api.postsPerMinute',
    kind: 'integer',
    default: '100',
    min: 1,
    max: 1_000_000,
    help: 'POST requests that one API key may send to /api/v1 in a minute, on each gateway.',
  },
  {
    key: 'api.deletesPerMinute',
    kind: 'integer',
    default: '10',
    min: 1,
    max: 1_000_000,
    help: 'DELETE requests that one API key may send to /api/v1 in a minute, on each gateway.',
  },
  {
    key: 'mail.smtpUrl',
    kind: 'secret',
    help: 'Server by which mails to customers are sent: smtp://USER:PASSWORD@HOST:587 or smtps://…:465. Without it operators hand them on (`holdfast mail`).',
  },
  {
    key: 'mail.from',
    kind: 'text',
    default: 'Holdfast <no-reply@localhost>',
    help: 'Sender of mails to customers.',
  },
  {
    key: 'mail.resetUrl',
    kind: 'text',
    help: 'Page where customers set a password; mails link to it with ?token=. It sends the token to /api/v1/password-resets.',
  },
  {
    key: 'memory.bodyBuffer',
    kind: 'bytes',
    default: '128MiB',
    min: 16 * MiB,
    max: 64 * GiB,
    help: 'Memory for the bodies in flight of all requests together.',
  },
  {
    key: 'codec.workers',
    kind: 'integer',
    auto: true,
    default: 'auto',
    min: 0,
    max: 256,
    help: 'Worker threads that hash and encrypt. 0: none; auto: by the number of processors.',
  },
  {
    key: 'gateway.threads',
    kind: 'integer',
    auto: true,
    default: 'auto',
    min: 1,
    max: LIMITS.gatewayThreadsMax,
    help: 'Threads of a single node, or of a gateway, that serve clients, each with its own listener on the shared port; memory.bodyBuffer needs 16 MiB for each. 1: the main thread serves clients, too; auto: 1 below four processors, otherwise half of them, 16 at most.',
  },
  {
    key: 'metadata.threads',
    kind: 'integer',
    auto: true,
    default: 'auto',
    min: 0,
    max: LIMITS.metadataThreadsMax,
    help: 'Threads of a single node that have its shards, which are dealt out among them. 0: the main thread has them; auto: 0 where one thread serves clients, otherwise a quarter of the processors.',
  },
  {
    key: 'uploads.expiry',
    kind: 'duration',
    default: '31d',
    min: MINUTE,
    max: 3650 * DAY,
    help: 'Age at which an unfinished multipart upload is aborted.',
  },
  {
    key: 'lifecycle.day',
    kind: 'duration',
    default: '1d',
    min: SECOND,
    max: DAY,
    help: 'Length of a day of lifecycle rules; midnight is where it begins, counted from 1970-01-01T00:00Z. Shorter for tests only.',
  },
  {
    key: 'lifecycle.scanInterval',
    kind: 'duration',
    default: '1min',
    min: SECOND,
    max: DAY,
    help: 'How often it is looked whether the lifecycle of a bucket is due.',
  },
  {
    key: 'lifecycle.workShare',
    kind: 'integer',
    default: '70',
    min: 1,
    max: 100,
    help: 'Share of the time, in percent, that a process works on lifecycle while something is due; the rest is left to clients.',
  },
  {
    key: 'metering.minimumDays',
    kind: 'integer',
    default: '90',
    min: 0,
    max: 3650,
    help: 'Days for which stored data is charged at least: what goes earlier counts as deleted storage for the rest of them.',
  },
  {
    key: 'metering.flushInterval',
    kind: 'duration',
    default: '1min',
    min: SECOND,
    max: 4 * MINUTE,
    help: 'How often a gateway writes down what requests count for: what a gateway that crashes loses of it.',
  },
  {
    key: 'storage.inlineBodyMax',
    kind: 'bytes',
    default: '64KiB',
    min: 0,
    max: LIMITS.inlineBodyBytesMax,
    help: 'Bodies up to this size travel and live with their metadata.',
  },
  {
    key: 'storage.chunkSize',
    kind: 'bytes',
    default: '1MiB',
    min: LIMITS.chunkBytesMin,
    max: LIMITS.chunkBytesMax,
    help: 'Plaintext of one chunk of a larger body. In a cluster bodies of 32 MiB or more have chunks of four times as much, 4 MiB at most.',
  },
  {
    key: 'storage.separateFrom',
    kind: 'bytes',
    default: '256KiB',
    never: true,
    min: 0,
    max: LIMITS.chunkBytesMax,
    help: 'Chunks from this size on are written once, by direct I/O where the file system has it, into files beside the database of the disk. `never`, or 0: all chunks go into the database. Change it at any time: both forms are read.',
  },
  {
    key: 'storage.readingGrace',
    kind: 'duration',
    default: '10min',
    min: SECOND,
    max: DAY,
    help: 'How long the data of a deleted object is kept for those who are reading it.',
  },
  {
    key: 'storage.reclaimAfter',
    kind: 'bytes',
    default: '64MiB',
    min: MiB,
    max: 1024 * GiB,
    help: 'Bytes of deleted data from which the disk is made to give them back at once.',
  },
  {
    key: 'storage.awayAfter',
    kind: 'duration',
    default: '15min',
    min: 10 * SECOND,
    max: 7 * DAY,
    help: 'In a cluster, on metadata nodes: how long nobody may serve a disk before its data is copied to others.',
  },
  {
    key: 'storage.hangAfter',
    kind: 'duration',
    default: '60s',
    min: SECOND,
    max: DAY,
    help: 'In a cluster: how long a drive may leave a write unanswered before its node goes on, or ends, without it. Ten times as long while it merges tables.',
  },
  {
    key: 'storage.reclaimDelay',
    kind: 'duration',
    default: '5min',
    min: SECOND,
    max: DAY,
    hidden: true,
    help: 'How long half as much deleted data may wait.',
  },
  {
    key: 'storage.disks',
    kind: 'list',
    items: 'path',
    default: '',
    help: 'Folders of the disks of a storage node, one on each disk, which must exist. Default: one disk, in the data folder.',
  },
  {
    key: 'storage.repairRate',
    kind: 'bytes',
    default: '0',
    min: 0,
    max: 64 * GiB,
    help: 'Bytes per second that a metadata node has copied between storage nodes to make up for missing copies. 0: as fast as it goes with a few copies at once.',
  },
  {
    key: 'storage.auditPeriod',
    kind: 'duration',
    default: '7d',
    min: SECOND,
    max: 365 * DAY,
    help: 'How often a metadata node looks whether all data is on all of its disks, where nothing else has given reason to.',
  },
  {
    key: 'storage.sweepPeriod',
    kind: 'duration',
    default: '1h',
    min: SECOND,
    max: 30 * DAY,
    hidden: true,
    help: 'From the end of one search of all disks for data that nobody needs to the beginning of the next.',
  },
  {
    key: 'storage.scrubRate',
    kind: 'bytes',
    default: '8MiB',
    min: 64 * KiB,
    max: 64 * GiB,
    help: 'Bytes per second that a storage node reads of each disk, and a single node of its chunks, to find what the disk has lost. More where a pass would not end within storage.scrubPeriod.',
  },
  {
    key: 'storage.scrubPeriod',
    kind: 'duration',
    default: '14d',
    min: 10 * SECOND,
    max: 365 * DAY,
    help: 'How often everything on a disk is read: from the beginning of one pass to that of the next. Where this is too short for that, the disk is read all the time.',
  },
  {
    key: 'shards',
    kind: 'integer',
    default: String(LIMITS.shardCountDefault),
    min: 1,
    max: LIMITS.shardCountMax,
    hidden: true,
    help: 'Number of metadata shards of a new data folder; an existing one keeps its number.',
  },
  {
    key: 'join',
    kind: 'list',
    items: 'publicName',
    default: '',
    help: "URLs of the cluster's etcd servers: for the roles metadata, storage and gateway.",
  },
  {
    key: 'etcd.ca',
    kind: 'path',
    help: "Certificate of the authority of etcd's servers (PEM): etcd is spoken to by TLS.",
  },
  {
    key: 'etcd.cert',
    kind: 'path',
    help: 'Certificate that etcd is shown (PEM), where it wants one.',
  },
  {
    key: 'etcd.key',
    kind: 'path',
    help: 'Private key of that certificate (PEM).',
  },
  {
    key: 'etcd.user',
    kind: 'text',
    help: 'Name of a user of etcd, where it has users.',
  },
  {
    key: 'etcd.password',
    kind: 'secret',
    help: 'Password of that user.',
  },
  {
    key: 'cluster.secret',
    kind: 'secret',
    help: 'Shared by all processes of a cluster that runs on one machine alone. Otherwise: certificates.',
  },
  {
    key: 'cluster.ca',
    kind: 'path',
    help: "Certificate of the cluster's authority (PEM), as `holdfast cluster certs` makes it.",
  },
  {
    key: 'cluster.cert',
    kind: 'path',
    help: "This node's certificate (PEM), signed by the authority.",
  },
  {
    key: 'cluster.key',
    kind: 'path',
    help: "This node's private key (PEM).",
  },
  {
    key: 'cluster.keys',
    kind: 'path',
    help: 'Folder with master-keys.json and root-credentials.json, as `holdfast cluster init` makes it: for gateways.',
  },
  {
    key: 'node.listen',
    kind: 'hostPort',
    default: '127.0.0.1:0',
    help: 'Address and port at which other nodes of the cluster reach this one. Port 0 takes a free one.',
  },
  {
    key: 'node.advertise',
    kind: 'hostPort',
    help: 'Address and port that this node gives to other nodes, where they reach it by others than node.listen: in a container, say.',
  },
  {
    key: 'node.zone',
    kind: 'text',
    help: 'What fails together with this node: a rack, a room. Copies go to distinct zones. Default: the node itself.',
  },
  {
    key: 'health.listen',
    kind: 'hostPort',
    help: 'Address and port for /health/live, /health/ready and /metrics, by plain HTTP, to anybody. Metadata and storage nodes have them nowhere else; S3 addresses have them, too, but tell /metrics to nobody who comes through a proxy.',
  },
  {
    key: 'metadata.forceLoopback',
    kind: 'boolean',
    default: 'false',
    hidden: true,
    help: 'For tests: every message to a shard is serialised, as between machines.',
  },
] as const satisfies readonly SettingRow[];

type Row = (typeof SETTINGS)[number];

/** HOST:PORT, with the brackets of an IPv6 address removed. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

interface ValueOfKind {
  readonly text: string;
  readonly path: string;
  readonly secret: string;
  readonly bytes: number;
  readonly duration: number;
  readonly integer: number;
  readonly boolean: boolean;
  readonly list: readonly string[];
  readonly hostPort: HostPort;
}

type ValueOf<R extends Row> =
  | (R extends { choices: readonly (infer C)[] }
      ? C
      : R['kind'] extends keyof ValueOfKind
        ? ValueOfKind[R['kind']]
        : never)
  | (R extends { auto: true } ? 'auto' : never)
  | (R extends { default: string } ? never : undefined);

/** In code a name ends in its unit: `storage.readingGrace` is config.storage.readingGraceMs. */
type PropertyOf<R extends Row> = R['kind'] extends 'duration'
  ? `${R['key']}Ms`
  : R['kind'] extends 'bytes'
    ? `${R['key']}Bytes`
    : R['key'];

type GroupOf<P extends string> = P extends `${infer Group}.${string}` ? Group : never;

/** The loaded settings: frozen, durations in ms, sizes in bytes. */
export type Config = {
  readonly [R in Row as PropertyOf<R> extends `${string}.${string}` ? never : PropertyOf<R>]: ValueOf<R>;
} & {
  readonly [G in GroupOf<Row['key']>]: {
    readonly [R in Row as PropertyOf<R> extends `${G}.${infer Name}` ? Name : never]: ValueOf<R>;
  };
};
