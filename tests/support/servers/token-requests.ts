// The commands that take an idempotency token, each as one request that may be sent again: for tests of what is kept of
// them. BUCKET keeps versions, so that each one that is done shows.

import type { IdempotencyToken } from '../../../src/ports/metadata/jobs.ts';
import type { ObjectKey } from '../../../src/types/names.ts';
import { packOriginals } from '../../../src/types/originals.ts';
import { BUCKET, etagOf, kek, type MetadataShards, OWNER } from '../metadata/metadata-shards.ts';

/** `name` tells requests apart: each has objects of its own. */
export interface TokenRequest {
  setUp(world: MetadataShards, name: string): Promise<unknown>;
  send(world: MetadataShards, name: string, token?: IdempotencyToken): Promise<{ kind: string }>;
}

const withToken = (token: IdempotencyToken | undefined) => (token === undefined ? {} : { token });

const moveKey: TokenRequest = {
  setUp: (world, name) => world.put(`from ${name}`),
  send: (world, name, token) =>
    world.execute('move-key', {
      bucketId: BUCKET,
      move: { from: `from ${name}` as ObjectKey, to: `to ${name}` },
      overwrites: false,
      ...withToken(token),
    }),
};

const beginMove: TokenRequest = {
  setUp: (world, name) => world.put(`from ${name}/key`),
  send: (world, name, token) =>
    world.execute('begin-move', {
      bucketId: BUCKET,
      from: `from ${name}/`,
      to: `to ${name}/`,
      overwrites: false,
      ...withToken(token),
    }),
};

const composeVersion: TokenRequest = {
  setUp: (world, name) => world.put(`part ${name}`),
  async send(world, name, token) {
    const asked = { bucketId: BUCKET, key: `part ${name}` as ObjectKey, includeBody: false };
    const found = await world.query('get-version', asked);
    if (found.kind !== 'found' || found.version.manifest.kind !== 'direct') throw new Error('no part');
    const { manifest, sizeBytes } = found.version;
    const linkId = world.newLinkId();
    const uses = manifest.uses.map((use) => ({ ...use, linkId }));
    return world.execute('compose-version', {
      bucketId: BUCKET,
      key: `whole ${name}` as ObjectKey,
      version: {
        sizeBytes,
        owner: OWNER,
        kek,
        etag: `${etagOf(name)}-1`,
        originals: packOriginals({ sizeBytes, md5: etagOf(name) }),
      },
      body: { uses, segments: manifest.segments },
      data: { births: [], links: uses.map(({ blobId }) => ({ blobId, linkId })) },
      ...withToken(token),
    });
  },
};

const appendVersion: TokenRequest = {
  setUp: (world, name) => world.put(`log ${name}`),
  send(world, name, token) {
    const { sizeBytes, grant } = world.newData();
    return world.execute('append-version', {
      bucketId: BUCKET,
      key: `log ${name}` as ObjectKey,
      linkId: world.newLinkId(),
      piece: { sizeBytes, md5: etagOf(name), births: grant.births, crcs: {} },
      kek: { found: kek, renewed: kek },
      ...withToken(token),
    });
  },
};

export const TOKEN_REQUESTS = {
  'move-key': moveKey,
  'begin-move': beginMove,
  'compose-version': composeVersion,
  'append-version': appendVersion,
} as const;

export type TokenRequestName = keyof typeof TOKEN_REQUESTS;
export const TOKEN_REQUEST_NAMES = Object.keys(TOKEN_REQUESTS) as TokenRequestName[];

/** The token by which a request of this name is known. */
export const tokenOf = (name: string): IdempotencyToken => ({ token: `token ${name}`, digest: name });
