// Signatures as the gateway judges them, without a socket: one account with the credentials of AWS's own examples, a clock that
// stands at their day, and requests signed by our own client to be bent by the test.

import { utf8 } from '../../../src/base/bytes/bytes.ts';
import { createLocalIdentityFeed } from '../../../src/coordination/local-identity-feed.ts';
import { type Authentication, authenticate } from '../../../src/gateway/auth/authenticate.ts';
import { createIdentities, type Identities } from '../../../src/gateway/auth/identities.ts';
import { readPayload } from '../../../src/gateway/auth/payload-form.ts';
import { readHeaders } from '../../../src/gateway/http/request-headers.ts';
import { parseTarget } from '../../../src/gateway/s3/request/target.ts';
import { createKeyring } from '../../../src/platform/memory/memory-keyring.ts';
import { AppError } from '../../../src/types/errors.ts';
import type { AccountId } from '../../../src/types/names.ts';
import { requireDone } from '../../../src/types/require-done.ts';
import { type MetadataShards, openMetadata } from '../metadata/metadata-shards.ts';
import { createManualClock, createSeededRandom, type ManualClock } from '../run/simulated.ts';
import { type Credentials, presign, type SigningOptions, signHeaders } from '../servers/s3-client.ts';

/** "Authenticating requests: using the authorization header". */
export const AWS: Credentials = {
  accessKey: 'AKIAIOSFODNN7EXAMPLE',
  secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};
export const DAY_MS = Date.parse('2013-05-24T00:00:00Z');
export const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
export const HOST = 'examplebucket.s3.amazonaws.com';
export const ACCOUNT = '000000000007' as AccountId;

export interface Sent {
  method?: string;
  uri?: string;
  /** In the order and spelling sent. */
  headers: readonly (readonly [string, string])[];
  otherHosts?: readonly string[];
  service?: string;
  /** The bucket that the host names; null: path style. Default `examplebucket`. */
  hostBucket?: string | null;
  /** Default true. */
  takesSigV2?: boolean;
}

export interface SigningWorld {
  clock: ManualClock;
  metadata: MetadataShards;
  identities: Identities;
  identify(sent: Sent): Promise<Authentication>;
  /** The kind of caller, or status and code of the error. */
  outcome(sent: Sent): Promise<string>;
}

export async function openSigningWorld(nowMs = DAY_MS): Promise<SigningWorld> {
  const clock = createManualClock(nowMs);
  const shards = await openMetadata();
  const keyring = createKeyring();
  const { metadata: port, feed } = createLocalIdentityFeed(shards.shards);
  const identities = createIdentities({ metadata: port, keyring, random: createSeededRandom(1), feed });
  const metadata: MetadataShards = {
    ...shards,
    // As in the embedded form: all that changes identities passes by the feed.
    execute: async (name, command, shard = 0) => requireDone(await port.execute({ shard }, name, command)),
  };
  await metadata.execute('create-account', {
    account: {
      accountId: ACCOUNT,
      name: 'example',
      email: 'e@example.com',
      canonicalId: '7'.repeat(64),
      state: 'paid',
      bucketsMax: 1,
      isRoot: false,
    },
    accessKey: { accessKey: AWS.accessKey, sealedSecret: keyring.wrap(utf8(AWS.secretKey)) },
  });

  async function identify(sent: Sent): Promise<Authentication> {
    const { method = 'GET', uri = '/', service = 's3' } = sent;
    const headers = readHeaders(sent.headers.flat());
    const target = parseTarget(
      uri,
      sent.hostBucket === undefined ? 'examplebucket' : (sent.hostBucket ?? undefined),
    );
    const { hash: payloadHash } = readPayload(headers.values, target.query.parameters);
    const hosts = { mayBeSent: true, others: () => sent.otherHosts ?? [] };
    return authenticate(
      { identities, clock, rules: { service, takesSigV2: sent.takesSigV2 ?? true } },
      { method, target, headers, payloadHash, hosts },
    );
  }

  return {
    clock,
    metadata,
    identities,
    identify,
    async outcome(sent) {
      try {
        return (await identify(sent)).caller.kind;
      } catch (error) {
        if (error instanceof AppError) return `${error.status} ${error.code}`;
        throw error;
      }
    },
  };
}

/** A GET as our own client signs it, with changes before; `extra` headers come after. */
export function signed(
  change: Partial<SigningOptions> = {},
  extra: Readonly<Record<string, string>> = {},
): Sent {
  const options = {
    method: 'GET',
    uri: '/',
    headers: { host: HOST, 'x-amz-content-sha256': EMPTY_SHA256 },
    credentials: AWS,
    nowMs: DAY_MS,
    ...change,
  };
  const { headers } = signHeaders(options);
  return { method: options.method, uri: options.uri, headers: Object.entries({ ...headers, ...extra }) };
}

export function presigned(expiresSeconds: number | string, change: Partial<SigningOptions> = {}): Sent {
  const headers = change.headers ?? { host: HOST };
  const uri = presign({
    method: 'GET',
    uri: '/test.txt',
    credentials: AWS,
    nowMs: DAY_MS,
    ...change,
    headers,
    expiresSeconds,
  });
  return { method: change.method ?? 'GET', uri, headers: Object.entries(headers) };
}
