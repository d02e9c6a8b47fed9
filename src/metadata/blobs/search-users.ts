// A search for the versions, and parts of uploads, that use certain blobs of a shard: a page of rows in each step. Links say in
// which shards they are, and how many, so that it ends as soon as all are found; which versions they are no link says.
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { FindingPlace } from '../../types/findings.ts';
import type { BlobId } from '../../types/names.ts';
import { askShard, SilentShard } from './ask-shard.ts';

const PAGE_ROWS = 200;
/** In this order: what manifests are found is looked for in versions and parts. */
const TABLES = ['manifestPages', 'objects', 'parts'] as const;

type Table = (typeof TABLES)[number];

/** Where a user was found: the page of rows begins behind `after`. */
export interface UserPage {
  shard: number;
  table: Table;
  after?: Uint8Array;
  /** What it uses: the blob itself, or a manifest that leads to it. */
  target: BlobId;
}

export interface FoundUser {
  blobId: BlobId;
  place: FindingPlace;
  page: UserPage;
}

export type SearchStep = { kind: 'found'; users: FoundUser[] } | { kind: 'end' } | { kind: 'silent' };

type Metadata = Pick<MetadataPort, 'query'>;

export class UserSearch {
  readonly #metadata: Metadata;
  /** Blobs, and manifests that lead to some, with the blobs that were asked for. */
  readonly #targets: Map<BlobId, Set<BlobId>>;
  readonly #plan: number[];
  /** Of the first shard of the plan; absent: it has not begun. */
  #left: Map<BlobId, number> | undefined;
  #table = 0;
  #after: Uint8Array | undefined;

  constructor(metadata: Metadata, { shard, blobIds }: { shard: number; blobIds: readonly BlobId[] }) {
    this.#metadata = metadata;
    this.#targets = new Map(blobIds.map((blobId) => [blobId, new Set([blobId])]));
    this.#plan = [shard];
  }

  /** `silent`: a shard does not answer; the next step asks another one first. */
  async step(): Promise<SearchStep> {
    const [shard] = this.#plan;
    if (shard === undefined) return { kind: 'end' };
    const users = await this.#stepIn(shard).catch((error: unknown) => {
      if (error instanceof SilentShard) return undefined;
      throw error;
    });
    if (users !== undefined) return { kind: 'found', users };
    this.#endShard();
    this.#plan.push(shard);
    return { kind: 'silent' };
  }

  async #stepIn(shard: number): Promise<FoundUser[]> {
    if (this.#left === undefined) {
      this.#left = new Map();
      await this.#countLinks(shard, [...this.#targets.keys()]);
    }
    const table = TABLES[this.#table];
    if (this.#left.size === 0 || table === undefined) {
      this.#endShard();
      return [];
    }
    const after = this.#after;
    const query = { blobIds: [...this.#left.keys()], table, ...(after && { after }), limit: PAGE_ROWS };
    const page = await askShard(this.#metadata, shard, 'find-users', query);
    const found: FoundUser[] = [];
    for (const { blobId: target, place } of page.users) {
      const of = { shard, table, target, ...(after && { after }) };
      if (place.manifest !== undefined) await this.#addManifest(shard, place.manifest as BlobId, target);
      else for (const blobId of this.#targets.get(target) ?? []) found.push({ blobId, place, page: of });
      if (place.manifest === undefined) this.#foundOne(target);
    }
    this.#after = page.next;
    if (page.next === undefined) this.#table++;
    return found;
  }

  /** Which of them the shard's own versions use, and which other shards have claimed them. */
  async #countLinks(shard: number, blobIds: readonly BlobId[]): Promise<void> {
    const { holders } = await askShard(this.#metadata, shard, 'find-holders', { blobIds: [...blobIds] });
    for (const [at, { shards, manifests }] of holders.entries()) {
      const blobId = blobIds[at] as BlobId;
      for (const { shard: of, linkCount } of shards) {
        if (of === shard) this.#left?.set(blobId, linkCount);
        else if (!this.#plan.includes(of)) this.#plan.push(of);
      }
      for (const manifest of manifests) await this.#addManifest(shard, manifest, blobId);
    }
  }

  async #addManifest(shard: number, manifest: BlobId, target: BlobId): Promise<void> {
    const isNew = !this.#targets.has(manifest);
    const blobIds = this.#targets.get(manifest) ?? new Set();
    for (const blobId of this.#targets.get(target) ?? []) blobIds.add(blobId);
    this.#targets.set(manifest, blobIds);
    if (!isNew) return;
    this.#foundOne(target);
    await this.#countLinks(shard, [manifest]);
  }

  #foundOne(target: BlobId): void {
    const left = (this.#left?.get(target) ?? 0) - 1;
    if (left > 0) this.#left?.set(target, left);
    else this.#left?.delete(target);
  }

  #endShard(): void {
    this.#plan.shift();
    this.#left = undefined;
    this.#table = 0;
    this.#after = undefined;
  }
}

/** Looks again at the page where a user was found; undefined: it is not there any more, or in another page. Throws SilentShard. */
export async function findAgain(
  metadata: Metadata,
  { page: { shard, target, ...page }, place }: FoundUser,
): Promise<FindingPlace | undefined> {
  const query = { blobIds: [target], ...page, limit: PAGE_ROWS };
  const { users } = await askShard(metadata, shard, 'find-users', query);
  const { key, version, upload, part } = place;
  return users.find(
    ({ place: now }) =>
      now.key === key && now.version === version && now.upload === upload && now.part === part,
  )?.place;
}
