// Commands of metadata in short words, so that a transcript fits the eye; they run as the commands that they stand for.
// All are about one bucket, and uploads about its key "k". Ids as in short-ids.ts.
//   bucket {}, versioning {to}            create-bucket, set-bucket-config
//   put {key, blob, link}                 commit-version with a new blob; also bytes (10), inline, ifNoneMatch
//   copy {key, blob, link}                commit-version with a link to a blob; isClaimed: of another home
//   remove {key, versionId} or {items}    delete-versions
//   tag {key, versionId, to}              set-tags; `to` as {name: value}
//   upload {}                             create-upload
//   part {upload, number, blob, link}     commit-part with a new blob of 5 MiB; isCopy: with a link to a blob
//   complete {upload, parts}              complete-upload; parts as [number, blob]; also ifNoneMatch
//   claim {by, link, blobs}, settle {blob, link, verdict}    claim-links, settle-claims
//   release {blob, link}, erase {blob}    release-links, erase-blobs
//   mark {blob, link, minutes}            condemn-blobs, for a link that ended so long after the beginning
import { linkRow } from '../../src/metadata/schema/keyspace.ts';
import { metadataMachine } from '../../src/metadata/state-machine.ts';
import type { DataGrant } from '../../src/ports/metadata/blobs.ts';
import type { CommandName, CommandOf, OutcomeOf } from '../../src/ports/metadata/port.ts';
import type { DeleteItem, NewVersion } from '../../src/ports/metadata/versions.ts';
import type { CommandSpec, View } from '../../src/ports/state-machine.ts';
import {
  type AccountId,
  type BucketId,
  type BucketName,
  homeShardOf,
  type ObjectKey,
  type VersionId,
} from '../../src/types/names.ts';
import { packOriginals } from '../../src/types/originals.ts';
import { linkCodec } from '../../src/types/records/rows.ts';
import type { BlobUse } from '../../src/types/version.ts';
import { blobIdOf, linkIdOf, START_MS } from './short-ids.ts';

export const BUCKET = 'b000000000000001' as BucketId;
const OWNER = '000000000001' as AccountId;
const UPLOAD_KEY = 'k' as ObjectKey;
const KEK = { by: 'master' as const, keyId: 'k1', wrapped: Uint8Array.of(1) };
const MiB = 1024 * 1024;

interface LinkWords {
  blob: string;
  link: string;
}

interface BlobWords extends LinkWords {
  bytes?: number;
  inline?: boolean;
}

interface PutWords extends BlobWords {
  key: ObjectKey;
  ifNoneMatch?: '*';
}

interface CopyWords extends BlobWords {
  key: ObjectKey;
  isClaimed?: boolean;
}

interface PartWords extends BlobWords {
  upload: string;
  number: number;
  isCopy?: boolean;
}

interface CompleteWords {
  upload: string;
  parts: [number, string][];
  ifNoneMatch?: '*';
}

type NoWords = Record<never, never>;
type RemoveWords = DeleteItem | { items: DeleteItem[] };

export const SHORT_COMMANDS = {
  bucket: short({
    name: 'create-bucket',
    expand: (_: NoWords) => ({ bucketId: BUCKET, name: 'bucket' as BucketName, owner: OWNER }),
    print: ({ kind }) => kind,
  }),
  versioning: short({
    name: 'set-bucket-config',
    expand: ({ to }: { to: 'enabled' | 'suspended' }) => ({
      bucketId: BUCKET,
      kind: 'versioning' as const,
      document: { status: to },
    }),
    print: ({ kind }) => kind,
  }),
  put: short({ name: 'commit-version', expand: expandPut, print: printCommit }),
  copy: short({ name: 'commit-version', expand: expandCopy, print: printCommit }),
  remove: short({
    name: 'delete-versions',
    expand: (words: RemoveWords) => ({
      bucketId: BUCKET,
      owner: OWNER,
      items: 'items' in words ? words.items : [words],
    }),
    print: ({ items }) => items.map(printDelete),
  }),
  tag: short({
    name: 'set-tags',
    expand: ({ to, ...version }: { key: ObjectKey; versionId?: VersionId; to: Record<string, string> }) => ({
      bucketId: BUCKET,
      ...version,
      tags: Object.entries(to).map(([key, value]) => ({ key, value })),
    }),
    print: (outcome) => outcome,
  }),
  upload: short({
    name: 'create-upload',
    expand: (_: NoWords) => ({ bucketId: BUCKET, upload: NEW_UPLOAD }),
    print: (outcome) => (outcome.kind === 'created' ? { uploadId: outcome.upload.uploadId } : outcome),
  }),
  part: short({ name: 'commit-part', expand: expandPart, print: ({ kind }) => kind }),
  complete: short({ name: 'complete-upload', expand: expandComplete, print: printComplete }),
  claim: short({
    name: 'claim-links',
    expand: ({ by, link, blobs }: { by: number; link: string; blobs: string[] }) => ({
      shard: by,
      linkId: linkIdOf(link),
      blobIds: blobs.map(blobIdOf),
    }),
    print: ({ kind }) => kind,
  }),
  settle: short({
    name: 'settle-claims',
    expand: (words: LinkWords & { verdict: 'confirmed' | 'dropped' }, view) => ({
      claims: [{ ...linkNameOf(words), ...nonceOf(words, view), verdict: words.verdict }],
    }),
    print: ({ kind }) => kind,
  }),
  release: short({
    name: 'release-links',
    expand: (words: LinkWords) => ({ links: [linkNameOf(words)] }),
    print: ({ kind }) => kind,
  }),
  mark: short({
    name: 'condemn-blobs',
    expand: (words: LinkWords & { minutes: number }) => ({
      ended: [{ ...linkNameOf(words), endedAtMs: START_MS + words.minutes * 60_000 }],
    }),
    print: ({ kind }) => kind,
  }),
  erase: short({
    name: 'erase-blobs',
    expand: ({ blob }: { blob: string }) => ({ blobIds: [blobIdOf(blob)] }),
    print: ({ kind }) => kind,
  }),
} satisfies Record<string, CommandSpec<never, unknown>>;

function short<Words, N extends CommandName>(form: {
  name: N;
  /** With what it looks at, to decide. */
  expand(words: Words, view?: View): CommandOf<N>;
  /** The outcome in short. */
  print(outcome: OutcomeOf<N>): unknown;
}): CommandSpec<Words, unknown> {
  const { expand, print } = form;
  const spec = metadataMachine.commands[form.name] as CommandSpec<CommandOf<N>, OutcomeOf<N>>;
  return {
    locks: (words) => spec.locks(expand(words)),
    reads: (words) => spec.reads(expand(words)),
    more: (words, view) => spec.more?.(expand(words), view),
    decide(words, view, context) {
      const { outcome, ...decision } = spec.decide(expand(words, view), view, context);
      return { ...decision, outcome: print(outcome) };
    },
  };
}

const NEW_UPLOAD = {
  key: UPLOAD_KEY,
  owner: OWNER,
  initiator: OWNER,
  kek: KEK,
  sealedHeaders: Uint8Array.of(2),
};

function expandPut(words: PutWords): CommandOf<'commit-version'> {
  const { key, ifNoneMatch } = words;
  const use = useOf(words);
  const conditions = ifNoneMatch === undefined ? {} : { conditions: { ifNoneMatch } };
  return { bucketId: BUCKET, key, version: versionOf(use), data: birthOf(use), ...conditions };
}

function expandCopy(words: CopyWords): CommandOf<'commit-version'> {
  const use = useOf(words);
  const data = linkTo(use, words.isClaimed);
  return { bucketId: BUCKET, key: words.key, version: versionOf(use), data };
}

function expandPart(words: PartWords): CommandOf<'commit-part'> {
  const use = useOf({ bytes: 5 * MiB, ...words });
  const { sizeBytes } = use;
  const segments = [{ use: 0, offsetBytes: 0, sizeBytes }];
  return {
    bucketId: BUCKET,
    key: UPLOAD_KEY,
    uploadId: words.upload as never,
    part: { partNumber: words.number, sizeBytes, etag: use.blobId, uses: [use], segments },
    data: words.isCopy ? linkTo(use) : birthOf(use),
  };
}

function expandComplete({ upload, parts, ifNoneMatch }: CompleteWords): CommandOf<'complete-upload'> {
  return {
    bucketId: BUCKET,
    key: UPLOAD_KEY,
    uploadId: upload as never,
    parts: parts.map(([partNumber, blob]) => ({ partNumber, etag: blobIdOf(blob) })),
    ...(ifNoneMatch && { conditions: { ifNoneMatch } }),
  };
}

function linkNameOf({ blob, link }: LinkWords) {
  return { blobId: blobIdOf(blob), linkId: linkIdOf(link) };
}

/** As of one who has asked about the claim that is pending now. */
function nonceOf(words: LinkWords, view: View | undefined): { nonce?: string } {
  const { blobId, linkId } = linkNameOf(words);
  const row = view?.row(linkRow(blobId, linkId));
  const { nonce } = row === undefined ? {} : linkCodec.decode(row);
  return nonce === undefined ? {} : { nonce };
}

function useOf({ blob, link, bytes = 10, inline = false }: BlobWords): BlobUse {
  return {
    ...linkNameOf({ blob, link }),
    sizeBytes: bytes,
    storage: inline ? 'inline' : 'chunks',
    chunkSizeBytes: MiB,
    wrappedDataKey: Uint8Array.of(7),
  };
}

function birthOf(use: BlobUse): DataGrant {
  const body = use.storage === 'inline' ? { body: new Uint8Array(use.sizeBytes) } : {};
  return { births: [{ use, ...body }], links: [] };
}

/** With a claim as its home answered, without asking there. */
function linkTo(use: BlobUse, isClaimed = false): DataGrant {
  const { blobId, linkId, sizeBytes, storage, chunkSizeBytes } = use;
  const layout = { kind: 'data' as const, sizeBytes, storage, chunkSizeBytes };
  const claim = isClaimed ? { claim: { homeShard: homeShardOf(blobId), linkId, layout } } : {};
  return { births: [], links: [{ blobId, linkId, ...claim }] };
}

function versionOf(use: BlobUse): NewVersion {
  const { sizeBytes, blobId } = use;
  return {
    sizeBytes,
    etag: blobId,
    owner: OWNER,
    kek: KEK,
    originals: packOriginals({ sizeBytes, md5: blobId }),
    manifest: { kind: 'direct', uses: [use], segments: [{ use: 0, offsetBytes: 0, sizeBytes }], parts: [] },
  };
}

function printCommit(outcome: OutcomeOf<'commit-version'>): unknown {
  return outcome.kind === 'committed' ? { committed: outcome.versionId } : outcome;
}

function printComplete(outcome: OutcomeOf<'complete-upload'>): unknown {
  if (outcome.kind !== 'committed') return outcome;
  const { versionId, etag, repeated } = outcome;
  return { committed: versionId, etag, repeated };
}

function printDelete(outcome: OutcomeOf<'delete-versions'>['items'][number]): unknown {
  if (outcome.kind !== 'deleted') return outcome;
  const { versionId, isDeleteMarker, madeMarker } = outcome;
  const what = madeMarker ? 'madeMarker' : isDeleteMarker ? 'removedMarker' : 'removed';
  return versionId === undefined ? what : { [what]: versionId };
}
