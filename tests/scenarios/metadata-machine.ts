// The state machine of metadata for scenarios: with short commands (short-commands.ts), and queries that print what is
// there on one screen: versions {}, tags {key, versionId}, blobs {}, queues {}, names {}.
import { asBuffer, fromUtf8, toHex } from '../../src/base/bytes/bytes.ts';
import { readU48 } from '../../src/metadata/schema/key-parts.ts';
import { TABLES } from '../../src/metadata/schema/keyspace.ts';
import { metadataMachine } from '../../src/metadata/state-machine.ts';
import type { ResultOf } from '../../src/ports/metadata/port.ts';
import type { QuerySpec, StateReader, TableRef } from '../../src/ports/state-machine.ts';
import { blobCodec, foreignCodec, linkCodec, nameCodec, outboxCodec } from '../../src/types/records/rows.ts';
import type { ScenarioMachine } from './machines.ts';
import { metadataWorkers } from './metadata-workers.ts';
import { BUCKET, SHORT_COMMANDS } from './short-commands.ts';
import { START_MS, shortBlob, shortLink } from './short-ids.ts';

async function rowsOf(state: StateReader, table: TableRef) {
  return state.range({ table, gte: new Uint8Array(0), lt: new Uint8Array(64).fill(0xff), limit: 1000 });
}

/** Key, `id` or `null`, order, `*` for the latest, `-` for a marker, size. */
const showVersions: QuerySpec<{ prefix?: string }, string[]> = {
  async run({ prefix = '' }, state, context) {
    const list = metadataMachine.queries['list-versions'] as QuerySpec<unknown, { versions: Listed[] }>;
    const page = await list.run({ bucketId: BUCKET, prefix, max: 1000 }, state, context);
    return page.versions.map(({ key, versionId, isLatest, summary }) => {
      const marks = `${isLatest ? '*' : ''}${summary.isDeleteMarker ? '-' : ''}`;
      return `${key} ${versionId === 'null' ? 'null' : 'id'} ${summary.order}${marks} ${summary.sizeBytes} bytes`;
    });
  },
};

/** `key=value` of each tag, in their order. */
const showTags: QuerySpec<{ key: string; versionId?: string }, string> = {
  async run(words, state, context) {
    const get = metadataMachine.queries['get-version'] as QuerySpec<unknown, ResultOf<'get-version'>>;
    const result = await get.run({ bucketId: BUCKET, includeBody: false, ...words }, state, context);
    if (result.kind !== 'found') return result.kind;
    return result.version.tags?.map(({ key, value }) => `${key}=${value}`).join(' ') ?? 'no tags';
  },
};

interface Listed {
  key: string;
  versionId: string;
  isLatest: boolean;
  summary: { order: number; isDeleteMarker: boolean; sizeBytes: number };
}

/** Blobs and foreign rows, each with its links. */
const showBlobs: QuerySpec<Record<never, never>, string[]> = {
  async run(_query, state) {
    const links = (await rowsOf(state, TABLES.links)).map(({ key, value }) => {
      const { state: linkState, shard } = linkCodec.decode(value);
      const by = linkState === 'own' ? '' : ` ${linkState} by ${shard}`;
      return { blob: toHex(key.subarray(0, 16)), text: `${shortLink(toHex(key.subarray(16)))}${by}` };
    });
    const linksOf = (blob: string) => {
      const texts = links.filter((link) => link.blob === blob).map(({ text }) => text);
      return texts.length === 0 ? 'no links' : `links ${texts.join(', ')}`;
    };
    const blobs = (await rowsOf(state, TABLES.blobs)).map(({ key, value }) => {
      const { kind, condemnedAtMs } = blobCodec.decode(value);
      const what = condemnedAtMs === undefined ? 'live' : 'condemned';
      return `${kind} ${shortBlob(toHex(key))} ${what}, ${linksOf(toHex(key))}`;
    });
    const foreign = (await rowsOf(state, TABLES.foreign)).map(({ key, value }) => {
      const { linkId } = foreignCodec.decode(value);
      return `foreign ${shortBlob(toHex(key))} claimed by ${shortLink(linkId)}, ${linksOf(toHex(key))}`;
    });
    return [...blobs, ...foreign];
  },
};

/** What waits for background work. */
const showQueues: QuerySpec<Record<never, never>, string[]> = {
  async run(_query, state) {
    const ended = (await rowsOf(state, TABLES.endedLinks)).map(
      ({ key }) => `ended ${shortBlob(toHex(key.subarray(6, 22)))} ${shortLink(toHex(key.subarray(22)))}`,
    );
    const condemned = (await rowsOf(state, TABLES.condemned)).map(
      ({ key }) => `condemned ${shortBlob(toHex(key.subarray(6)))} at ${ageOf(readU48(key))}`,
    );
    const pending = (await rowsOf(state, TABLES.pendingClaims)).map(
      ({ key }) => `pending ${shortBlob(toHex(key.subarray(16)))} ${shortLink(toHex(key.subarray(0, 16)))}`,
    );
    const outbox = (await rowsOf(state, TABLES.outbox)).map(({ value }) => {
      const record = outboxCodec.decode(value);
      if (record.kind === 'rename-bucket') return `outbox rename-bucket ${record.from} to ${record.to}`;
      if (record.kind !== 'release-link') return `outbox ${record.kind} ${record.name}`;
      return `outbox release ${shortBlob(record.blobId)} ${shortLink(record.linkId)}`;
    });
    const pages = (await rowsOf(state, TABLES.manifestPages)).map(
      ({ key }) => `page ${asBuffer(key).readUInt16BE(16)} of ${shortBlob(toHex(key.subarray(0, 16)))}`,
    );
    return [...ended, ...condemned, ...pending, ...outbox, ...pages];
  },
};

/** Names with their states, and what the lists of their owners show. */
const showNames: QuerySpec<Record<never, never>, string[]> = {
  async run(_query, state) {
    const names = (await rowsOf(state, TABLES.names)).map(({ key, value }) => {
      const { state: nameState, bucketId, change } = nameCodec.decode(value);
      return `${fromUtf8(key)} ${nameState}${change ? ` ${change.other}` : ''}: ${bucketId}`;
    });
    const listed = (await rowsOf(state, TABLES.accountBuckets)).map(({ key }) => fromUtf8(key.subarray(6)));
    return [...names, `listed: ${listed.join(' ') || 'none'}`];
  },
};

function ageOf(timeMs: number): string {
  return `+${(timeMs - START_MS) / 60_000}m`;
}

export const metadataScenario: ScenarioMachine = {
  machine: {
    ...metadataMachine,
    commands: { ...metadataMachine.commands, ...SHORT_COMMANDS },
    queries: {
      ...metadataMachine.queries,
      versions: showVersions,
      tags: showTags,
      blobs: showBlobs,
      queues: showQueues,
      names: showNames,
    },
  },
  tables: TABLES,
  workers: metadataWorkers,
};
