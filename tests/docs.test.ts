// Pages that list what tables of the code already say: each is written by this test (`vitest -u`) and must be fresh.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { WORKERS, type WorkerRow } from '../cmd/workers.ts';
import { addAccessCommands } from '../src/cli/access/commands.ts';
import { valueNameOf } from '../src/config/help.ts';
import { CONFIG_FILE_VARIABLE, fileVariableOf, flagOf, variableOf } from '../src/config/names.ts';
import { SETTINGS } from '../src/config/schema.ts';
import type { SettingRow } from '../src/config/setting-row.ts';
import { createOperatorApi, OPERATOR_PREFIX } from '../src/gateway/operator-api/operator-api.ts';
import type { OperatorContext } from '../src/gateway/operator-api/operator-context.ts';
import type { OperationMatch, OperationRow } from '../src/gateway/s3/operation.ts';
import { OPERATIONS } from '../src/gateway/s3/registry.ts';
import { METRICS } from '../src/platform/telemetry/prom-telemetry.ts';
import { ERRORS, type ErrorSpec } from '../src/types/errors.ts';
import { FINDINGS, PENDING } from '../src/types/findings.ts';
import { LIMITS } from '../src/types/limits.ts';
import { operatorCaller } from './support/servers/operator-caller.ts';

const page = (name: string) => join(import.meta.dirname, '..', 'docs', name);
const code = (text: string) => `\`${text}\``;

const CONFIGURATION_HEAD = `# Settings

Holdfast starts without any. A flag wins over the environment, the environment over the settings file, the file over
the default. Unknown names are refused, with the nearest known one. \`holdfast server --help\` prints this list.

The settings file is JSON and is named by \`--config PATH\` or \`${CONFIG_FILE_VARIABLE}\`; its keys are those below, where a dot
is a level: \`{"listen": "0.0.0.0:9000", "tls": {"mode": "self-signed"}}\`.

Secrets have no flag, because a command line is visible to every user of the machine: they come from the environment,
from a file that the variable ending in \`_FILE\` names, or from the settings file.

Sizes are whole numbers with B, KiB, MiB, GiB or TiB; durations with ms, s, min, h or d; lists are separated by commas.
`;

function describeSetting(row: SettingRow): string {
  const flag = flagOf(row);
  const names = [
    ...(flag === undefined ? [] : [code(`${flag} ${valueNameOf(row)}`)]),
    code(variableOf(row)),
    ...[fileVariableOf(row)].filter((name) => name !== undefined).map(code),
  ];
  const fallback = row.default === undefined || row.default === '' ? 'none' : code(row.default);
  return `### ${row.key}\n\n${row.help} Default: ${fallback}.\n\n${names.join(', ')}\n`;
}

test('docs/configuration.md lists the settings as the schema has them', async () => {
  const rows: readonly SettingRow[] = SETTINGS;
  const shown = rows.filter((row) => row.hidden !== true).map(describeSetting);
  const hidden = rows.filter((row) => row.hidden === true).map(describeSetting);
  const text = [
    CONFIGURATION_HEAD,
    '## For everyone\n',
    ...shown,
    '## For tests and rare cases\n\nThese are not in the help.\n',
    ...hidden,
  ].join('\n');
  await expect(text).toMatchFileSnapshot(page('configuration.md'));
});

const ERRORS_HEAD = `# Errors

Every error that the server answers, as the catalogue in \`src/types/errors.ts\` has it. S3 requests get it as XML
(\`<Error><Code>…\`), the operator API as JSON (\`{"error": {"code": …}}\`), with the request id in both. The message may
be more precise than the one shown here.

| Code | Status | Message |
|---|---|---|
`;

test('docs/errors.md lists the errors as the catalogue has them', async () => {
  const rows = Object.entries<ErrorSpec>(ERRORS).map(
    ([name, { status, message }]) => `| ${name} | ${status} | ${message} |\n`,
  );
  await expect(ERRORS_HEAD + rows.join('')).toMatchFileSnapshot(page('errors.md'));
});

const METRICS_HEAD = `# Metrics

\`GET /metrics\` in the text form of Prometheus: at the S3 address, but not to requests that come through a proxy
([security.md](security.md)), and at that of \`health.listen\`, which metadata and storage nodes need for it
([configuration.md](configuration.md)). Each process tells of itself; a figure that it does not know is absent, and not 0. Beside
those below there are the usual ones of a Node process, with the prefix \`holdfast_\` (processor time, memory, event-loop lag,
garbage collection).

| Name | Kind | Labels | Meaning |
|---|---|---|---|
`;

const METRICS_TAIL = `
## A cluster as a whole

Scrape all of its processes as one job. [deploy/prometheus/alerts.yaml](../deploy/prometheus/alerts.yaml) has alerts for what
\`holdfast cluster status\` raises alarms about; name it in \`rule_files\`. What the tables of [status.md](status.md) show is here:

| Of \`cluster status\` | As |
|---|---|
| shards that are open | \`sum(holdfast_shards{role="primary"})\` of \`max(holdfast_cluster_shards)\` |
| disks by state | \`count by (state, leave) (holdfast_disk_state)\` |
| partitions that are left of drains | \`sum by (disk) (holdfast_disk_partitions) and on (disk) holdfast_disk_state{leave="draining"}\` |
| room of all disks | \`sum(holdfast_disk_free_bytes{disk!=""})\`; without a disk are the data folders of metadata nodes, and the sum as gateways see it |
| storage nodes that take new chunks | \`min(holdfast_chunk_taking_nodes)\` |
| chunks that lack copies | \`sum by (copies) (holdfast_chunks_to_repair)\` |
| seconds of repair that are left | \`sum(holdfast_chunks_to_repair) / sum(holdfast_repair_chunks_per_second)\` |
| shards that have audited the last change of owners | \`sum(holdfast_shards{role="primary"}) - sum(holdfast_audits_awaited)\` |
| metadata nodes that leave | \`sum by (leave) (holdfast_leaving_voters)\` |
`;

test('docs/metrics.md lists what is measured', async () => {
  const rows = Object.entries(METRICS).map(([name, row]) => {
    const labels = 'labels' in row ? row.labels.join(', ') : '';
    return `| ${code(name)} | ${row.kind} | ${labels} | ${row.help} |\n`;
  });
  await expect(METRICS_HEAD + rows.join('') + METRICS_TAIL).toMatchFileSnapshot(page('metrics.md'));
});

const S3_HEAD = `# S3 operations

What is there, and where an operation differs from AWS's documentation. An operation that is not listed answers 501
NotImplemented; so does a header of a feature that is not there yet. Besides the errors listed, every operation may
answer those of authentication, addressing and overload ([errors.md](errors.md) has all).

Requests are signed by SigV4 or SigV2, in the header, the query or a form, or not at all ([security.md](security.md) says what
each is worth); any well-formed region will do. The bucket is in the path, or in the host under one of the domains that
are set. A bucket that is not there is told first, then who may not, and only then what is wrong with a body.

`;

/** `PUT /{bucket}/{key}?partNumber&uploadId` */
function requestLine({ method, on, query = [], header, keys }: OperationMatch): string {
  const path = { service: '/', bucket: '/{bucket}', object: '/{bucket}/{key}' }[on];
  if (keys !== undefined) return [...keys].map((key) => code(`${method} /{bucket}/${key}`)).join(', ');
  const line = `${method} ${path}${query.length === 0 ? '' : `?${query.join('&')}`}`;
  return header === undefined ? code(line) : `${code(line)} with ${code(header)}`;
}

function describeOperation(row: OperationRow<never>): string {
  const errors = row.errors.length === 0 ? '' : `\n\nErrors: ${row.errors.join(', ')}.`;
  const differences = row.differences === undefined ? '' : `\n\n${row.differences}`;
  return `## ${row.name}\n\n${requestLine(row.match)}${differences}${errors}\n`;
}

test('docs/s3.md lists the operations of the registry', async () => {
  const rows = OPERATIONS.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(describeOperation);
  await expect(S3_HEAD + rows.join('\n')).toMatchFileSnapshot(page('s3.md'));
});

const FSCK_HEAD = `# holdfast fsck

\`holdfast fsck\` compares everything that is stored with everything that leads to it, and names each thing that does not
agree. The server goes on serving. It mends nothing: what crashes leave behind is freed by the background jobs without its
help, so what it finds is damage (of a disk, or of a bug), and damage is looked at before anything is written over it.

\`\`\`
holdfast fsck                 # rows, links, claims, counters, indexes; that bodies and chunks are there, with their sizes
holdfast fsck --read-data     # every chunk is read and its checksum verified, every small body is read and measured
holdfast fsck --full-speed    # takes no rests: where no client waits, or the answer is wanted soon
holdfast fsck --json
\`\`\`

Without a server, \`holdfast fsck --rebuild-chunks --data-dir DIR\` makes rows of chunks anew: see
[below](#rows-of-chunks-from-extents-alone).

The exit code is 0 when all agrees, 1 when something was found, 2 when it could not be said (no server, a shard without an
answer, ended early). Each finding is one line: its kind, then where, as \`name=value\`. The first 10,000 are named, all are
counted.

## What it proves

- Every version, part and manifest page has a link on each blob that it uses, and every link has one of them that uses it.
- Every linked blob is there, is not on its way out, and is laid out as its users see it; every blob has a link, or waits
  to be released. Copies across shards: the claim in the home and the row in the other shard agree, both ways.
- Every blob has its body, its pieces 0 to n - 1, or chunks 0 to n - 1 of the right sizes and no other; every body, piece and
  chunk has its blob. Whoever uses a blob of pieces, which appends let grow, has its beginning.
- Every key has one latest version, newer than all others; indexes and queues lead to what is there, both ways.
- Objects and bytes of buckets and shards, buckets of accounts and shards, chunks and their bytes are counted right.
- Every open bucket has its name, every name its bucket.
- Every key that a master key wraps is under one that is there.

What it does not prove: that bodies can be decrypted (keys of customers are not here; the tag of every piece is checked
when it is read by a client), and that what was acknowledged is what is stored (a lost version leaves nothing behind).
Of versions that are renamed while they are compared the data may be left for the next comparison.

## What has to be uploaded again

Where bytes of data are damaged or missing, each version and each part of an open upload that uses it is named at the end, by
bucket, key and version: \`object-damaged bucket="b" key="k" version="null" blob="..."\`, in \`--json\` as findings of that kind.
Copies use the same data, so one damaged chunk may name several. It takes one more pass over all versions for each 1,000
pieces of damaged data, none when nothing is damaged; the first 10,000 are looked for. The log names the version that a reader
was refused as well (\`data-of-a-version-is-lost\`). Alarms ([status.md](status.md)) and the log (\`object-damaged\`) name up to
ten of a shard without being asked. Names go to the operator alone, never into metrics or answers to others.

To list what is to be uploaded again: \`holdfast fsck --read-data --json | jq -r '.findings[] |
select(.kind=="object-damaged") | [.bucket,.key,.version] | @tsv' | sort -u\`.

## Work under way

Rows of one shard are looked at by pages, each with all that must agree with it under one view of one moment, so a change
is seen whole or not at all. What lies apart (other shards, bodies, chunks) is read at other moments: what does not agree
is looked at again, in the order in which work under way would explain it, and only what persists is found. Work that waits
for its turn is counted apart, with the age of the oldest.

## What it costs

Each row is read once, with one to four look-ups beside: some 0.2 ms of processor time for an object, all its rows together.
Versions are walked once more for each 500,000 links of a shard, which are the only thing that is held in memory (16 MiB),
and once more at one moment where a link was met nowhere: a rename may have taken its version to where the walk had been.
Chunks cost a row of their index each, with \`--read-data\` all their bytes. A bucket whose counter has changed meanwhile is
counted once more at one moment. After each page of 50 rows it rests four times as long as that took, so clients have four
fifths of the time of the thread that serves them; with \`--full-speed\` they have every other turn of some
milliseconds, and it is done up to five times sooner. One runs at a time, and ends when the command that asked for it does.

`;

test('docs/fsck.md lists what may be found', async () => {
  const rowsOf = (kinds: Readonly<Record<string, string>>) =>
    Object.entries(kinds).map(([kind, meaning]) => `| ${code(kind)} | ${meaning} |`);
  const text = [
    `${FSCK_HEAD}## Rows of chunks from extents alone

Where the database in \`chunks\` is lost and [salvage](failed-disk.md#a-lost-table) cannot help, but \`chunks/extents\` is there: each
record in an extent file has a head that says whose bytes follow. On a single node that does not run, as its user:

\`\`\`
$ holdfast fsck --rebuild-chunks --data-dir /var/lib/holdfast; echo $?
12 extent files, 2.94 GiB.
Chunks below storage.separateFrom, and older ones that were not moved yet, are not in them.
Nothing was changed. --yes puts the database aside, into chunks.lost, and makes another one.
2
$ holdfast fsck --rebuild-chunks --data-dir /var/lib/holdfast --yes
12 extent files, 2.94 GiB.
3,004 chunks were found, and have rows again.
\`\`\`

It reads all extents twice, and ends with 0. Only chunks that lie in extents come back: the last piece of a body that is smaller
than \`storage.separateFrom\`, and chunks from before extents that the scrub had not moved into them, lay in the database and are
gone with it. So
start the server and run \`holdfast fsck\`, which names each object that is not whole. What was deleted of late may come back as
chunks that nothing leads to; they go by themselves. Cut short, it is called again. A disk of a cluster needs none of this: its
chunks are written anew from other copies.

## What may be found\n\n| Kind | Meaning |\n|---|---|`,
    ...rowsOf(FINDINGS),
    '\n## What may be on its way\n\n| Kind | Meaning |\n|---|---|',
    ...rowsOf(PENDING),
    '',
  ].join('\n');
  await expect(text).toMatchFileSnapshot(page('fsck.md'));
});

const LIMITS_TEXT = `# Limits, memory, overload

Every number stands in \`src/types/limits.ts\`, with how they relate; all are listed at the end of this page. Those that are
the operator's to weigh are settings: \`memory.bodyBuffer\` and the timeouts of \`requests.*\`.

## What bounds memory

Resident memory is at most about the sum of these; a server does not use them all at once.

| What | Bound | With the defaults |
|---|---|---|
| Program, threads, empty stores | fixed | 180 MiB |
| V8 heap of the requests' thread | grows with requests in flight and connections | 60 MiB, 25 KiB more for each open connection |
| TLS | what a connection begins with, and its longest write, 64 KiB at most (128 KiB between nodes), until it closes | 60 to 120 KiB more for each of tlsConnectionsMax open connections, 470 MiB at most |
| Memtables | chunks 2 x 64 MiB, small bodies 2 x 64 MiB, rows 6 x 8 MiB, index 6 x 1 MiB | 70 to 140 MiB while bodies of one kind are written |
| Block caches | 64 MiB rows, 64 MiB small bodies, 32 MiB index | what has been read, 160 MiB at most |
| Rows of metadata that are asked for again and again | cachedRowsMax of up to cachedRowBytesMax and a key of 1 KiB | 4 MiB of usual rows, 26 MiB at most |
| Large documents of buckets, decoded | 4 MiB of their rows | 20 MiB at most |
| Bodies in flight, documents of requests and pages of listings among them | memory.bodyBuffer and an eighth of it, for those that could not go on otherwise | 144 MiB |
| Chunk buffers kept for use | chunkBuffersPooledBytesMax | 32 MiB |
| Bodies that have arrived and wait for their reader | intakeQueuesBytesMax, one read (64 KiB) and streamBufferBytes with one read more for each body at work | 16 to 90 MiB |
| Answers that clients have not taken, but for objects that are streamed | unsentBytesMax | 64 MiB |
| Lines of the log that nobody takes | 32 MiB; then lines are lost, and \`log-lines-lost\` says how many | |
| Commits that wait for the disk | commitQueueBytesMax for each database; shards say busy at overlayBytesMax, chunks wait at chunkPutsBytesMax, within the memory of bodies | 64 MiB of small bodies and rows |

Where several gateway threads serve clients (\`gateway.threads\`), what is bounded for all requests is divided among them in equal
parts: connections, requests in flight, memory of bodies, codec threads, and what tenants share (below). Connections are dealt out
by chance, so that one thread may refuse a little before the sum is reached. Of bodies of IAM, STS and /api/v1 each thread takes
at least what one request needs. The rates of /api/v1 (\`api.*\`) are of each thread, and so are the waits after
wrong passwords, codes and signatures: who guesses has as many tries more as there are threads, as at several gateways of a
cluster. Each takes some 80 MiB of its own: a V8 heap, and 16 MiB of it for new objects.

What V8's heap has taken for a crowd of connections (220 MiB for 2,200) it would keep for ever: the process gives it back when the
heap has shrunk by 128 MiB, once a minute at most, or has grown by so much and the thread is idle, every 20 s at most. Where that has left 32 MiB more
than once before, as in the middle of a crowd, it tries again on an idle thread, after twice as long each time until an hour. It
stops the thread for some tenths of a second; \`heap-released\` in the log says how long, and what was given back. V8 collects when the
heap has twice of what lived in it (by itself four times, on machines of 16 GiB or more).

Memory of bodies that are done is free only once V8 has looked, and malloc (of glibc) gives back what lies at the end of its heap
alone. Behind that there is always some row or other that is in use. So after a crowd the process keeps what its bodies have had at
the peak, within the bounds above: it is free, and the next bodies have it before any new memory is taken. Resident MiB of a new
server at commit 22187747, two minutes after 20 s of each, and what of it was free within malloc:

| What came | Peak | Two minutes afterwards | Free within malloc |
|---|---|---|---|
| nothing | 240 | 240 | |
| 200 uploads of 8 MiB by a client that behaves, 16 at a time | 410 | 307 to 359 | |
| 2,200 uploads of 64 MiB that trickle | 517 | 353 | |
| the same three times, a minute between | 505, 505, 554 | 337 a minute after the last | 126 |
| uploads of 16 MiB at full speed, 200 at a time, three runs | 532 to 641 | 453 to 486 | 163 to 186: what sockets were read into, 64 KiB each |

\`MALLOC_TRIM_THRESHOLD_\` of 1 MiB and \`MALLOC_MMAP_THRESHOLD_\` of 256 KiB or 1 MiB leave 6 to 16 MiB less, and 1 MiB of the latter
costs a fifth more processor time of large bodies; \`MALLOC_ARENA_MAX=2\` leaves 17 MiB less. \`malloc_trim\`, called from
outside by a debugger, gave back 92 MiB in the fourth row; Node has no call for it.

## How bodies share their memory

Memory for bodies, the bodies that may be at work at once (one for each bodyShareBytesMin of memory.bodyBuffer) and the places
of those that wait (bodiesWaitingMax) are shared by tenant (below). What is free for the next account is 36 MiB of memory beside one
greedy address, 26 MiB beside one greedy key of many addresses, 14 MiB beside one such account of many keys, 7.5 MiB beside two; for the next key of the account 11 MiB beside one greedy key.

- A body takes more only while its tenant's share has room. Those that wait are let in by turns: one of each account, of each of
  its keys, and of each of their addresses, in a round; of one address bodies that have begun go before those that have not.
- Of those that have not begun as many wait as the share has places, requestWaitMaxMs at most; what comes then is refused at
  once.
- What a reader will take (a chunk, and the piece of it on its way to the client) is set aside before it is fetched; between two
  chunks it keeps what names its pieces, where they are over 64. Of a body that is sent, up to 64 KiB are set aside; one that goes with its metadata (storage.inlineBodyMax) as a whole, and it counts until its commit is decided.
- A client has one piece of 256 KiB on its way to it; one that took its last within quickReadMs is given up to piecesGivenMax of
  them together, while less than half of the memory is in use.
- When others wait, a reader whose client has taken nothing for bodyIdleMs keeps what it was given; the rest is fetched again when
  its client goes on. A PUT that has sent no whole chunk of the usual size, or a GET whose client has not taken what it was given,
  for bodyStalledMs ends then: a PUT by SlowDown, a GET by the end of its connection. It yields to those that
  wait at its own address, and to anyone where it is over its share; as many end as others wait.
- When all that an account may hold is held by bodies in the middle of a chunk, some of them are let through to its end by the
  extra eighth, which is shared in the same way. What begins within a request's other memory (a composition) has half of it or is alone.

## How documents are read

The XML of requests (part lists, keys to delete, tags, compositions) is refused at the first place where it is not
well-formed or goes beyond a bound: its size (xmlBodyBytesMax, deleteObjectsBodyBytesMax, completeBodyBytesMax,
lifecycleBodyBytesMax), its depth (xmlDepthMax), its elements, attributes and comments (xmlNodesMax, xmlAttributesMax), the
text of an element (xmlTextUnitsMax). The time for it is linear in its length, whatever it holds.

- A document of up to shortDocumentBytesMax is read at once, within 3 ms.
- A longer one is read in steps of about 1 ms, with one turn of the event loop between two steps. Accounts take turns step by
  step; the documents of one account are read one after the other.
- Before a longer one is read, what the head says is looked up: a part list for an upload that is not there is
  NoSuchUpload, and its body is not asked for.
- A body in aws-chunked framing is decoded in turns with all else. More than tinyChunksMax chunks below tinyChunkBytes are
  refused with InvalidChunkSizeError (AWS refuses every chunk below 8 KiB but the last one).
- Signatures of chunks that wait for their check, some 40 bytes for each, count in the memory of bodies: with chunks of
  tinyChunkBytes they take two thirds of what the bytes take, with smaller ones up to 1 MiB for a body.
- HTTP chunks are taken as they come, small ones together. Heads and chunked bodies are parsed 4 KiB at a time (chunks of a
  byte take 1.4 ms); of what has many chunks about 1,000 are parsed in a turn of the loop, in turns of tenants, and the rest
  waits. A body in small chunks that is refused is not read on.
- JSON of the operator API and /api/v1 has jsonValuesMax values at most, a lifecycle document 20,000: they are counted before it
  is parsed. An error names ten fields at most, and how many more are wrong.
- From its last byte until its operation is over a document counts documentMemoryFactor times in the memory of bodies.

## How listings share memory

While the page of a listing is read and its document made, listedKeyMemoryBytes for each key that it may have count in the memory
of bodies, an eighth of the thread's part of memory.bodyBuffer at most, also where it holds more. So 6 pages of 1,000 keys are made at a time for one address; the others
wait for room in turns of tenants, requestWaitMaxMs at most, and take no place of the bodies that wait.
So it is with lists of IAM and of context keys and with simulations (identityPageMemoryBytes each), answers of /api/v1 to GETs
(managementRecordMemoryBytes a record, managementPageMemoryBytes at least), ListBuckets (1 MiB), GETs of a lifecycle (2 MiB), ListParts
(4 KiB a part), copies and components of compositions (sourceMemoryBytes each; a composition 1 KiB a piece, where that is more). Users, roles and buckets with over 64 KiB of policies and rules: two of an account, of all eight.

## How tenants share

A tenant is an account whose signature fits, within it each signer, and within that each address (of IPv6 the first 64 bits). A signer is an access key; its presigned URLs and forms, whoever uses them, are another one. Sessions count as the key that began them, those of a role as one signer, API keys each.
An account may hold 8 times what is free of a thing, a signer 9 times what is free of the account's part, an address 9 times what is free of the signer's. Who have proved nothing yet are together like one account, with addresses in the place of signers. So one alone has most of it (8/9 an account, 4/5 a key or a stranger's
address, 72 % an address of a key), several share alike, and some of it is always free for the next; who holds nothing may take the last. Strangers with a presigned URL leave its maker 8 % of all at once, and as they end half of the account's part, a third where all
that is his comes from one address. Nothing is set aside for those that are away, and nobody has to be known beforehand.

| What | Of all | One account alone (one key of it, from one address) | Each of two (from one address each) | Kept for operators |
|---|---|---|---|---|
| connections | connectionsMax, 10000; over TLS tlsConnectionsMax, 4000, and 4/10 of each share | 8889 (8000, 7200) | 4706 (4186) | refusedConnectionsMax more, whose first request is served if it is theirs |
| requests in flight of S3, IAM, STS and /api/v1 | requestsInFlightMax, 2048 | 1820 (1638, 1474) | 963 (857) | theirs are not counted |
| requests that wait behind others | pipelinedWaitingMax, 4096 | 3640 (3276, 2949) | 1927 (1714) | |
| heads that have begun and are not complete: their bytes, and 80 for each line | unfinishedHeadsBytesMax, 32 MiB | 28 MiB (25, 23) | 15 MiB (13) | |
| memory of bodies | memory.bodyBuffer, 128 MiB | 113 MiB (102, 92) | 60 MiB (53) | |
| bodies at work | memory.bodyBuffer / bodyShareBytesMin, 512 | 455 (409, 368) | 240 (214) | |
| bodies that wait for memory | bodiesWaitingMax, 256 | 227 (204, 184) | 120 (107) | |
| bodies that have arrived and are not read, beyond one read of each; and as much in small records of TLS (below 1 KiB) that wait to be decrypted | intakeQueuesBytesMax, 16 MiB | 14.2 MiB (12.8, 11.5) | 7.5 MiB (6.6) | of TLS the connection ends beyond it |
| answers that are not taken, but for objects that are streamed | unsentBytesMax, 64 MiB | 56 MiB (51, 46) | 30 MiB (26) | theirs are not counted |
| bodies of the operator API and IAM, of unproved senders | unverifiedBodiesBytesMax, 1 MiB | (768 KiB) | (448 KiB) | who sends x-amz-content-sha256 needs none |
| bodies of /api/v1, IAM and STS, of known senders, until they are answered | provedBodiesBytesMax, 16 MiB | 14.2 MiB (12.8, 11.5) | 7.5 MiB (6.6) | of the operator API they are not counted |
| passwords and API keys that wait to be hashed or compared, in turns | passwordHashesWaitingMax, 64 | 32 (from one address 28) | 21 (19) | whoever names no API key that is there is one tenant |
| fields of forms, of unproved senders | unverifiedFormsBytesMax, 16 MiB | (12.8 MiB) | (7.1 MiB) | |
| answers of /metrics under way | metricsAnswersMax, 64 | (51) | (28) | |
| documents of /api/v1 on their way | publicAnswersBytesMax, 16 MiB | (12.8 MiB) | (7.1 MiB) | |
| connections to health.listen | healthConnectionsMax, 64 | (51) | (28) | idle ones go first; one with 4 requests unanswered ends at the next, and one whose body comes in chunks at its head, as at storage nodes |

- A connection counts by its address from the moment that it is taken, before hands are shaken and a head is there, and by
  an account once a request on it has proved one. Where a share is used up, the connection that has been idle longest is
  closed, of the address with most idle ones, of the largest signer of the largest account. One that is only listened to counts as idle, and so
  does one that waits for the body of who has proved nothing. A newcomer is refused only where nobody is idle.
- Heads that are not complete are measured once a second, and whenever 1,000 connections have come. Of a tenant that holds more
  than its share the oldest connections end, those of its largest address first. A head has headerLinesMax lines and
  headerBytesMax at most: more is 400 RequestHeaderSectionTooLarge, the connection ends, and nothing of it is executed.
- A request has its place from when it is known who asks until its answer is out. Nobody waits for the body of a stranger: a
  request that needs none (health, metrics, a preflight), and one that is refused by its head, is answered at once and its
  connection ends.
- The memory of an object that is streamed to its client is that of bodies. Of other answers a tenant that has left more than its
  share is refused further ones until its clients have taken some; never one whose signer has left less than unsentAtLeastBytes.
- The operator API hears no body before the head has named an operator's access key, IAM none before it has named any. They wait
  operatorBodyMaxMs and identityBodyMaxMs for it at most, and never let one wait for another.
- \`/health/ready\` says 503 while S3 refuses everybody. \`/health/live\` depends on none of this.
- The log line \`share-used-up\` names who is over its share, once a minute (\`signer\`: \`own\` or \`presigned\`, with the access key or the role's id). Behind a balancer that is not among
  \`trustedProxies\` all its clients are one address until they have signed.

## How long work gives way

No document, header or list of a client keeps the event loop for more than 50 ms of processor time. Listings of all kinds, and whatever else reads
many rows of metadata, read 250 rows at a time; documents and the pages of listings are made 1 to 3 ms at a time. Between two of
these steps the loop turns, and steps are done in turns of accounts: an account has one share, whether it has listings, documents,
policies, decisions, simulations or all of them; its signers take turns within it, and the kinds of work of each. So 32 listings
of one account delay another account's request by a few steps, and not by 32 pages. \`holdfast_event_loop_delay_seconds\` tells
how late the loop was; above loopHeldMs it is logged (event-loop-held) and an alarm.

A decision by policies may compare 6,000,000 characters (some 20 ms), and each pattern or value that is held against a text counts
as 12 of them, a number, date or address that is understood as 250: thousands of patterns of a hundred policies, each with a long
key or header, would take seconds. What is left then denies, and does not allow. Where a request needs many decisions, accounts take
turns between them.

A simulation shows 50 statements and 1,000 missing keys of a result at most. Beyond 4 MiB the answer ends its page with the action
that it has begun, whose further results have their decision alone.

Two thousand connections may send something at the same moment, and one turn of the loop would read it all. So heads are parsed in
turns of tenants, by what they cost: 128 short ones in a turn, or 8 of 30 KB, and over TLS four handshakes. What does not fit waits
in its socket. Of what comes over TLS 32 small records are decrypted at once. A metadata node starts 64 calls in a turn, of gateways in turns (one may have 750 deletions); accounts share its places for calls.

What stays apart, each with turns of its own: the start of requests, heads and handshakes, reading from connections with what begins at the
end of a body (32 in a turn, or four documents), and, in the process that has the shards, commands and queries. An account has a share of each.

Requests start in turns, too: from the head to what a request first waits for, with its authentication, starts take
requestStartsTurnMs of one turn of the loop, and the others wait for the next turns. While nobody waits a request starts at once.
Next is who has had least of this time of late, by the address, by the account that the connection has proved, or within that by the access key (another in a presigned URL) or API key
that the request names, whichever has had most: so neither many addresses of one account nor many keys of one address or account come before one that asks seldom, and all requests that name no
key are together like one key. Until the connection has proved an account a key counts within its address: whoever names another's key slows nobody down. One request of a connection waits so at most, so that connections bound how many do; one whose connection has ended meanwhile never begins.

What a shard decides in one entry is decided in one piece: the deletion of 1,000 keys, or of deleteVersionedKeysMax in a bucket with versions, or of deleteKeysBytesMax of long ones, a step of a
prefix MOVE, the MOVE of a key with moveVersionsMax versions, a composition of composeSegmentsMax pieces. Such a
piece keeps the thread for 15 to 45 ms of its processor time. Of an upload of 10,000 parts the list is checked, its checksum combined and the manifest
made in turns before that; what is left keeps it for some 40 ms. Commands that have read 200 rows or 200 KiB of them
take turns, by the bucket's owner: one of them in a turn of the loop, and after one that took more than 40 ms all others have the thread for as long. Of one owner two that
read them by and by (a Complete) are under way, of all owners eight: each holds what it has read until it is decided. Completes of up to 8 parts have as many places of their own, and wait for none of thousands. A list of parts that is wrong, or a MOVE onto what it may not replace, is refused before more is read. Shorter commands and queries, of which hundreds may be ready at once, have some 8 ms of a turn together; the rest waits for the next turns, by the account that asks. What one write of the store holds (commitGroupRowsMax rows, or one entry) is encoded in one turn, and leaves the overlays in one.

## What is answered when there is too much

| Too many | What becomes of a request |
|---|---|
| connections (connectionsMax, tlsConnectionsMax) | an idle connection of whoever has most is closed; where all are at work, the next request is answered SlowDown and the connection closes; health, metrics and operator API are served, then it closes |
| requests in flight (requestsInFlightMax) | of S3, IAM, STS and /api/v1: SlowDown before anything is read; health, metrics and operator API are served |
| bodies of the operator API from whoever has named an operator's access key and proved nothing, those of IAM from whoever has named any (unverifiedBodiesBytesMax) | SlowDown before the body is read |
| bodies of /api/v1, IAM and STS of known senders (the share of provedBodiesBytesMax) | SlowDown before the body is read, for the tenant who is over its share |
| fields of forms whose senders have proved nothing yet (unverifiedFormsBytesMax) | SlowDown before the body is read |
| answers of /metrics under way (metricsAnswersMax), documents of /api/v1 on their way (publicAnswersBytesMax) | SlowDown |
| unsent answers (the share of unsentBytesMax) | SlowDown for the tenant who has left them; beyond unsentBytesMax connections whose clients take nothing for bodyStalledMs end, those of the largest tenant first |
| bodies that wait for memory (the share of bodiesWaitingMax) | SlowDown before the body is read, for the tenant who is over its share |
| commands of a shard, rows that wait for the disk, or large rows that commands hold (the share of shardQueueMax, overlayBytesMax) | SlowDown for the account who is over its share, nothing is changed |
| outcomes that are kept under tokens (storedOutcomesBytesMax, storedOutcomesPerAccountBytesMax) | SlowDown for requests with an idempotency token; nothing is done. In a shard that others have filled an account may have outcomesAtLeastBytes |
| jobs of renamed prefixes without a token (tokenlessOutcomesBytesMax, tokenlessOutcomesPerAccountBytesMax) | SlowDown for prefixes to be renamed without a token; the same |
| requests behind one that is not answered, on one connection (pipelinedRequestsMax) and on all (pipelinedWaitingMax) | the connection ends; what its last read has brought behind them is not parsed |
| heads that are not complete (the share of unfinishedHeadsBytesMax) | the oldest connections end, of whoever holds too much |

A refused request without a body leaves its connection open. Of a body that was announced and not read, also behind an
unanswered Expect: 100-continue, up to refusedBodyDrainBytesMax are read and dropped, as long as the client goes on sending,
and the connection closes behind the answer: none of it is ever read as a request. Requests under way go on.
\`holdfast_requests_shed_total\` counts what was refused, by reason and by whose share was used up.

## Measured

Peak resident memory of a new server with the default settings, 3 s of each workload on 2 cores shared with other work
(the rate says little there; it is shown to tell how much went through).

| Workload | Peak | Rate |
|---|---|---|
| PUT 4 KiB, 16 and 256 in flight | 254, 303 MiB | 780/s |
| PUT 1 MiB, 8 and 64 in flight | 499, 674 MiB | 150 MiB/s |
| PUT 64 MiB, 4 in flight | 474 MiB | 80 MiB/s |
| PUT and GET of one object of 64 MiB, then of 5 GiB | 400, then 500 MiB | 86, 119 MiB/s |
| GET 4 KiB x16, GET 1 MiB x8 and x64, GET 64 MiB x4 | 251, 435, 439, 567 MiB | 120 MiB/s |
| LIST pages of 1000 x8 | 480 MiB | 60 pages/s |
| DeleteObjects of 1000 x4 | 511 MiB | 6/s |
| CopyObject x16, multipart 4 x 8 MiB x4, mixed 64 KiB x16 | 469, 451, 363 MiB | |
| 10,000 UploadPartCopy x32, then their Complete | 268, 329 MiB | 233/s, 4.4 s |
| 2,000 idle connections | 45 MiB more | |
| 2,000 connections with half a head each | 40 MiB more | |
| 1,000 GETs of 64 MiB by one address, each client taking 2 KiB every 2 s and coming again when it is refused (2.3 GB before memory was shared by tenant) | 660 MiB, 500 to 576 afterwards | another account: no request of 700 refused |
| 2,200 PUTs by one address that trickle 2 KiB every 2 s | 550 MiB, 490 to 560 afterwards | another account: no request of 430 refused |
| 2,000 PUTs of 1 MiB at once (before: 954 MiB) | 841 MiB | 1,241 done, 250 SlowDown |
| 5,000 GETs of 4 KiB at once | 314 MiB | all done |
| 5,000 PUTs of 4 KiB at once | 494 MiB | 3,111 done, 1,889 SlowDown |

### While one account attacks

\`npx node bench/hostile.ts\` runs the attacks of one account, or of strangers, one by one beside a well-behaved account: p50/p99 in ms,
resident MiB at the peak and 15 s after it. 10 s each, on 2 cores shared with the attacker. The newcomer asks for /health/live on a new
connection each time. In each row all four kinds of requests of the well-behaved account are answered, none by 503, with a p99 below
1 s. Measured at commit 707bf85a in one run: a row has memory that those before it left, 917 MiB at most, 1,065 for the last one. With
\`--cluster\` (busy with other programs, commit 10297bd8) all are answered as well, with a p99 of 1.5 s at most and 1,013 MiB.

| Attack | GET 4 KiB | PUT 4 KiB | PUT 1 MiB | LIST | operator | newcomer | refused | peak, after |
|---|---|---|---|---|---|---|---|---|
| nobody | 2/9 | 5/18 | 11/45 | 3/17 | 8/24 | 2/14 | 0 of 3790 | 477, 477 |
| 64 operator requests whose bodies trickle, without credentials | 1/8 | 4/15 | 9/23 | 2/12 | 6/18 | 2/11 | 0 of 4065 | 479, 479 |
| 2,100 health requests whose bodies never come | 2/14 | 5/21 | 10/41 | 3/16 | 8/28 | 2/16 | 0 of 3811 | 511, 353 |
| 2,100 uploads without a signature whose bodies never come | 2/16 | 5/20 | 12/32 | 3/33 | 9/24 | 2/12 | 0 of 3664 | 515, 354 |
| 2,000 halves of heads | 2/12 | 5/17 | 11/41 | 3/15 | 8/30 | 2/12 | 0 of 3767 | 473, 359 |
| 2,000 halves of heads of 750 lines | 6/65 | 10/114 | 19/169 | 7/96 | 13/183 | 4/180 | 0 of 1952 | 616, 475 |
| pipelined requests of 18 bytes, 64 KiB on each of 256 connections | 6/52 | 15/93 | 33/140 | 9/76 | 30/130 | 9/63 | 0 of 2027 | 669, 480 |
| connections opened and cut in the middle of a head, 64 at a time | 5/33 | 10/49 | 23/93 | 7/48 | 19/138 | 6/53 | 0 of 2537 | 620, 490 |
| tunnels that are reset, 64 at a time | 8/30 | 16/60 | 37/124 | 13/50 | 46/168 | 14/80 | 0 of 1902 | 623, 483 |
| uploads without a signature in HTTP chunks of one byte, 16 at a time | 2/21 | 6/39 | 13/55 | 4/26 | 9/44 | 3/22 | 0 of 3488 | 594, 489 |
| uploads in HTTP chunks of one byte, 16 at a time | 6/27 | 19/61 | 62/116 | 10/43 | 36/97 | 8/33 | 0 of 2092 | 598, 611 |
| uploads in HTTP chunks of one byte with extensions of 4 KB, 64 at a time | 6/31 | 19/60 | 57/149 | 12/46 | 38/119 | 9/38 | 0 of 2093 | 617, 619 |
| uploads of 16 MiB at full speed without a signature, 200 at a time | 5/13 | 16/33 | 41/86 | 9/23 | 26/66 | 8/17 | 0 of 2478 | 635, 493 |
| uploads of 16 MiB at full speed, 200 at a time | 13/49 | 41/106 | 89/218 | 22/65 | 104/329 | 21/63 | 0 of 1327 | 715, 575 |
| uploads in aws-chunked chunks of 64 bytes, 100 at a time | 3/22 | 9/51 | 18/91 | 5/27 | 12/55 | 4/27 | 0 of 3153 | 692, 715 |
| listings of 1,000 keys of 1 KiB, 32 at a time | 6/30 | 13/58 | 27/103 | 13/62 | 40/180 | 9/43 | 0 of 2174 | 795, 589 |
| /metrics, 32 at a time | 5/17 | 14/39 | 35/68 | 13/29 | 43/161 | 10/27 | 0 of 2262 | 760, 608 |
| wrong signatures with heads of 29 KB, 16 at a time | 6/19 | 15/43 | 35/83 | 14/38 | 45/138 | 10/31 | 0 of 2195 | 773, 584 |
| heads of 700 lines, 64 at a time | 11/32 | 32/59 | 83/131 | 30/49 | 163/344 | 23/46 | 0 of 1334 | 808, 589 |
| small GETs, 256 at a time | 30/54 | 50/87 | 103/206 | 35/75 | 416/495 | 34/69 | 0 of 934 | 791, 586 |
| 500 connections with 32 pipelined GETs each, read by nobody | 3/54 | 7/70 | 16/125 | 6/66 | 12/91 | 4/42 | 0 of 2920 | 845, 669 |
| tag documents of 1 MiB of ampersands, 24 at a time | 5/33 | 11/57 | 25/95 | 10/57 | 26/91 | 8/52 | 0 of 2344 | 835, 669 |
| documents of 4 MiB of ampersands for uploads that do not exist, 8 at a time | 4/13 | 9/25 | 26/58 | 8/22 | 18/46 | 6/19 | 0 of 2857 | 789, 693 |
| documents of 2 MiB of attributes, 24 at a time | 6/35 | 11/56 | 28/100 | 11/51 | 24/86 | 9/43 | 0 of 2292 | 832, 687 |
| part lists of 4 MiB in chunks of one byte, 8 at a time | 4/16 | 10/29 | 30/64 | 10/27 | 21/71 | 6/21 | 0 of 2712 | 790, 792 |
| deletes of 1,000 missing keys, 16 at a time | 5/18 | 10/50 | 24/87 | 11/43 | 34/115 | 7/25 | 0 of 2542 | 865, 715 |
| 1,000 slow readers of 64 MiB | 2/47 | 6/73 | 12/101 | 5/48 | 9/48 | 3/38 | 0 of 3282 | 822, 717 |
| 200 readers of 64 MiB that take 64 KiB five times a second | 2/38 | 6/68 | 13/116 | 5/71 | 9/78 | 3/39 | 0 of 3289 | 813, 717 |
| 1,000 slow readers with one presigned URL | 2/34 | 5/65 | 12/125 | 5/58 | 9/46 | 3/33 | 0 of 3269 | 838, 717 |
| small ranges, pipelined GETs, PUTs that trickle and GETs that are cut, all by presigned URLs | 41/186 | 105/368 | 289/861 | 61/235 | 612/1023 | 217/1529 | 0 of 407 | 841, 714 |
| 2,200 uploads of 64 MiB that trickle | 3/42 | 7/63 | 15/140 | 6/50 | 12/75 | 4/48 | 0 of 2830 | 900, 715 |
| listings of 1,000 keys, 32 at a time | 5/24 | 10/48 | 25/88 | 11/51 | 24/80 | 7/34 | 0 of 2518 | 849, 692 |
| lists of uploads, 32 at a time | 5/21 | 12/35 | 28/65 | 14/44 | 38/112 | 8/24 | 0 of 2350 | 860, 733 |
| forms with a line of 20,000 blanks and a bare line feed, 16 at a time | 6/23 | 15/44 | 51/109 | 14/43 | 56/165 | 10/34 | 0 of 2083 | 839, 738 |
| copies of 64 MiB with a checksum that the source has not, 64 at a time | 4/41 | 10/63 | 22/105 | 8/54 | 17/82 | 6/52 | 0 of 2475 | 851, 868 |
| appends of 16 KB to 16 keys, 256 at a time | 29/61 | 53/122 | 114/178 | 37/104 | 335/460 | 32/76 | 0 of 919 | 917, 707 |
| prefix MOVEs of 1,000 keys to names that are too long, 64 at a time | 9/46 | 26/77 | 67/125 | 35/72 | 294/477 | 18/55 | 0 of 1385 | 871, 703 |
| all of the above that take no account and no URL, at once (20 s, in a new server with 1,000 keys) | 11/195 | 32/300 | 87/490 | 21/260 | 98/495 | 14/418 | 0 of 2032 | 831, 570 |
`;

test('docs/limits.md lists the limits', async () => {
  const rows = Object.entries(LIMITS).map(([name, value]) => `| ${code(name)} | ${readable(name, value)} |`);
  const text = [`${LIMITS_TEXT}\n## All limits\n\n| Limit | Value |\n|---|---|`, ...rows, ''].join('\n');
  await expect(text).toMatchFileSnapshot(page('limits.md'));
});

/** By the unit that the name ends in. */
function readable(name: string, value: number): string {
  const units: [number, string][] = name.includes('Bytes')
    ? [
        [1024 ** 4, 'TiB'],
        [1024 ** 3, 'GiB'],
        [1024 ** 2, 'MiB'],
        [1024, 'KiB'],
        [1, 'bytes'],
      ]
    : name.includes('Ms')
      ? [
          [86_400_000, 'd'],
          [3_600_000, 'h'],
          [60_000, 'min'],
          [1000, 's'],
          [1, 'ms'],
        ]
      : [];
  const unit = units.find(([size]) => value >= size && value % size === 0);
  return unit === undefined ? String(Math.round(value * 1000) / 1000) : `${value / unit[0]} ${unit[1]}`;
}

const WORKERS_HEAD = `# Background work

What Holdfast does without being asked, as the list in \`cmd/workers.ts\` has it. Each worker does a small piece, lets
requests pass, and goes on; a piece that fails is tried again, and logged as \`worker-failed\` with the worker's name
([logs.md](logs.md)) and counted in \`holdfast_worker_failures_total\` ([metrics.md](metrics.md)).

Work of a shard is done by the metadata node that leads the shard, work of a disk by the storage node that has the disk; a
single node does all of it. Two jobs are done by one metadata node of a cluster at a time, under a lock in etcd: it decides
which nodes hold a shard, and which disks hold a chunk. A gateway rotates the [master keys](security.md#master-keys-of-a-cluster).

`;

const ROLES: Record<WorkerRow['role'], string> = { shard: 'shard', disk: 'disk', server: 'the whole store' };
const FORMS: Record<WorkerRow['forms'], string> = {
  both: 'both',
  embedded: 'single node',
  cluster: 'cluster',
};

test('docs/workers.md lists the background workers of each form', async () => {
  const rows = WORKERS.map(
    ({ name, role, forms, help }) => `| ${code(name)} | ${ROLES[role]} | ${FORMS[forms]} | ${help} |\n`,
  );
  const scans = WORKERS.flatMap(({ name, scan }) =>
    scan === undefined ? [] : [`| ${code(name)} | ${scan} |\n`],
  );
  const text = [
    ...[WORKERS_HEAD, '| Name | Work of | Runs in | What it does |\n|---|---|---|---|\n', ...rows],
    '\nThese look at everything there is, again and again. How far they have come is kept\n\n',
    ...['| Name | Where |\n|---|---|\n', ...scans],
  ];
  await expect(text.join('')).toMatchFileSnapshot(page('workers.md'));
});

const OPERATOR_HEAD = `# Operator API

What the command line tool calls, below \`${OPERATOR_PREFIX}\` at the S3 address. Only the root account may call it
([security.md](security.md)). Its requests are signed by AWS Signature Version 4 for the service \`holdfast\`, in any region, so
that any client that signs can call it. Bodies are JSON objects of 64 KiB at most; fields that are not known are refused.

The server describes all of it, with the fields of bodies and answers, in an OpenAPI 3.1 document:

    curl --aws-sigv4 aws:amz:us-east-1:holdfast --user "$ACCESS_KEY:$SECRET_KEY" \\
      http://127.0.0.1:9000${OPERATOR_PREFIX}/openapi.json

Errors are \`{"error": {"code", "message", "fields"}, "requestId"}\`; \`fields\` has a message for each field that is wrong. Those
below are of the call itself; each call also answers those of signatures, ValidationError and SlowDown ([errors.md](errors.md)).

`;

interface OpenApi {
  paths: Record<string, Record<string, OpenApiCall>>;
}

interface OpenApiCall {
  tags: string[];
  summary: string;
  requestBody?: { content: Record<string, { schema: { properties: object; required?: string[] } }> };
  responses: Record<string, { description: string }>;
}

async function readOpenApi(): Promise<OpenApi> {
  const body = Buffer.alloc(0);
  const caller = operatorCaller(body);
  const request = { method: 'GET', url: `${OPERATOR_PREFIX}/openapi.json`, body, caller };
  const answer = await createOperatorApi({} as OperatorContext).answer(request);
  return JSON.parse(String(answer.body));
}

/** Names of a body's fields; those that may be absent in brackets. */
function fieldsOf({ requestBody }: OpenApiCall): string {
  const { properties = {}, required = [] } = requestBody?.content['application/json']?.schema ?? {};
  const names = Object.keys(properties).map((name) => (required.includes(name) ? name : `[${name}]`));
  return names.length === 0 ? '' : code(names.join(', '));
}

const codesOf = ({ responses }: OpenApiCall) =>
  Object.values(responses).flatMap(({ description }) => description.match(/^\w+(?=: )/gm) ?? []);

test('docs/operator-api.md lists the calls as the OpenAPI document has them', async () => {
  const { paths } = await readOpenApi();
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, call]) => ({ name: `${method.toUpperCase()} ${path}`, call })),
  );
  const isOfEach = (one: string) => calls.every(({ call }) => codesOf(call).includes(one));
  const rows = calls.map(({ name, call }) => {
    const errors = codesOf(call).filter((one) => !isOfEach(one));
    const shown = code(name.replace(OPERATOR_PREFIX, ''));
    return `| ${shown} | ${call.summary} | ${fieldsOf(call)} | ${errors.join(', ')} |\n`;
  });
  const head = '| Call | What it does | Fields of the body | Errors |\n|---|---|---|---|\n';
  await expect(OPERATOR_HEAD + head + rows.join('')).toMatchFileSnapshot(page('operator-api.md'));
});

/** Commands by group: how each is called, what it does, its options beside those that all have. */
function commandTables(): string {
  const groups: { name: string; commands: Command[] }[] = [];
  addAccessCommands(
    (name) => {
      const parent = new Command(name);
      const commands: Command[] = [];
      groups.push({ name, commands });
      return (usage, help) => {
        const command = parent.command(usage).description(help);
        commands.push(command);
        return command;
      };
    },
    { env: {}, print: () => {}, nowMs: () => 0, sleep: async () => {} },
  );
  const cell = (text: string) => text.replaceAll('|', '\\|');
  return groups
    .map(({ name, commands }) => {
      const rows = commands.map((command) => {
        const args = command.usage().replace('[options]', '').trim();
        const call = `holdfast ${name} ${command.name()} ${args}`.trim();
        const options = command.options.map((option) => `${code(option.flags)} ${option.description}`);
        return `| ${code(call)} | ${cell([command.description(), ...options].join('<br>'))} |`;
      });
      return [`### holdfast ${name}\n`, '| Command | What it does |', '|---|---|', ...rows].join('\n');
    })
    .join('\n\n');
}

test('docs/access.md lists the commands as the program has them', async () => {
  const now = readFileSync(page('access.md'), 'utf8');
  const marked = /(<!-- commands -->\n)[\s\S]*(<!-- \/commands -->)/;
  expect(now).toMatch(marked);
  const text = now.replace(marked, (_, begin: string, end: string) => `${begin}${commandTables()}\n${end}`);
  await expect(text).toMatchFileSnapshot(page('access.md'));
});
