// Users, roles and sessions for tests of decisions: rows are written as the IAM API writes them, without its checks.
import { utf8 } from '../../../src/base/bytes/bytes.ts';
import { createSessions, type Session } from '../../../src/gateway/auth/sessions.ts';
import { systemRandom } from '../../../src/platform/system-clock.ts';
import type { AccountId } from '../../../src/types/names.ts';
import {
  identityKeys,
  type RoleRecord,
  type UserRecord,
} from '../../../src/types/records/identity-records.ts';
import type { GatewayWorld } from './gateway-world.ts';

export interface TestKeys {
  accessKey: string;
  secretKey: string;
}

/** The text of a policy of these statements. */
export function policyText(statements: readonly object[]): string {
  return JSON.stringify({ Version: '2012-10-17', Statement: statements });
}

interface Holder {
  name: string;
  /** Statements of its only inline policy. */
  statements?: readonly object[];
  /** Statements of its permissions boundary. */
  boundary?: readonly object[];
}

let count = 0;
const next = () => String(++count).padStart(16, '0');

type Change = Parameters<GatewayWorld['metadata']['execute']>;

async function change(
  world: GatewayWorld,
  accountId: AccountId,
  rows: object[],
  keys: object[],
): Promise<void> {
  const { revision } = await world.metadata.query('read-identities', { accountId });
  const command = { accountId, ifRevision: revision, rows, keys, isSeen: true } as never;
  const outcome = await world.metadata.execute('change-identities' as Change[0], command);
  if (outcome.kind !== 'changed') throw new Error(outcome.kind);
}

function holderOf(accountId: AccountId, { name, statements, boundary }: Holder) {
  const boundaryName = `boundary-of-${name}`;
  return {
    record: {
      name,
      path: '/',
      createdAtMs: 0,
      tags: [],
      inlinePolicies: statements === undefined ? [] : [{ name: 'inline', text: policyText(statements) }],
      attachedPolicies: [],
      ...(boundary && { boundary: `arn:aws:iam::${accountId}:policy/${boundaryName}` }),
    },
    rows:
      boundary === undefined
        ? []
        : [
            {
              key: identityKeys.policy(boundaryName),
              record: {
                kind: 'policy',
                id: `ANPA${next()}`,
                name: boundaryName,
                path: '/',
                createdAtMs: 0,
                updatedAtMs: 0,
                tags: [],
                versions: [{ number: 1, createdAtMs: 0 }],
                defaultVersion: 1,
                nextVersion: 2,
              },
            },
            {
              key: identityKeys.policyVersion(boundaryName, 1),
              record: { kind: 'policy-version', text: policyText(boundary) },
            },
          ],
  };
}

/** A user of the account with an access key. */
export async function addUser(
  world: GatewayWorld,
  accountId: AccountId,
  holder: Holder,
): Promise<TestKeys & { id: string }> {
  const id = `AIDA${next()}`;
  const [accessKey, secretKey] = [`AK${next()}`, `secret-of-${id}`];
  const { record, rows } = holderOf(accountId, holder);
  const user: UserRecord = {
    ...record,
    kind: 'user',
    id,
    groups: [],
    mfaDevices: [],
    accessKeys: [{ accessKey, isActive: true, createdAtMs: 0 }],
  };
  const key = identityKeys.user(holder.name);
  const index = { key: identityKeys.id(id), record: { kind: 'index', to: key } };
  const sealed = { accessKey, sealedSecret: world.keyring.wrap(utf8(secretKey)), userId: id };
  await change(world, accountId, [{ key, record: user }, index, ...rows], [{ kind: 'add', key: sealed }]);
  return { id, accessKey, secretKey };
}

/** A role of the account; its id. */
export async function addRole(
  world: GatewayWorld,
  accountId: AccountId,
  { trustPolicy = '{}', ...holder }: Holder & { trustPolicy?: string },
): Promise<string> {
  const id = `AROA${next()}`;
  const { record, rows } = holderOf(accountId, holder);
  const role: RoleRecord = { ...record, kind: 'role', id, trustPolicy, maxSessionSeconds: 3600 };
  const key = identityKeys.role(holder.name);
  const index = { key: identityKeys.id(id), record: { kind: 'index', to: key } };
  await change(world, accountId, [{ key, record: role }, index, ...rows], []);
  return id;
}

/** An enabled MFA device with its seed. `owner`: a user's id, or `root`. */
export async function addMfaDevice(
  world: GatewayWorld,
  accountId: AccountId,
  { name, owner }: { name: string; owner: string },
): Promise<{ serial: string; seed: Uint8Array }> {
  const chance = systemRandom.bytes(32);
  const record = {
    kind: 'mfa-device',
    name,
    path: '/',
    createdAtMs: 0,
    sealedSeed: world.keyring.wrap(chance),
    tags: [],
    enabled: { owner, atMs: 0 },
  };
  const settings = { kind: 'settings', rootMfaDevices: [name] };
  const ofRoot = owner === 'root' ? [{ key: identityKeys.settings, record: settings }] : [];
  await change(world, accountId, [{ key: identityKeys.mfaDevice(name), record }, ...ofRoot], []);
  return { serial: `arn:aws:iam::${accountId}:mfa/${name}`, seed: chance.subarray(0, 20) };
}

/** Temporary credentials. `issuer`: the access key that they hang on. */
export function beginSession(
  world: GatewayWorld,
  given: Pick<Session, 'kind' | 'accountId' | 'id' | 'issuer'> & Partial<Session>,
): TestKeys & { token: string } {
  const nowMs = Date.now();
  const session: Session = {
    accessKey: `ASIA${next()}`,
    secretKey: `session-secret-${next()}`,
    issuedAtMs: nowMs,
    expiresAtMs: nowMs + 3_600_000,
    ...given,
  };
  const token = createSessions({ keyring: world.keyring, random: systemRandom }).seal(session);
  return { accessKey: session.accessKey, secretKey: session.secretKey, token };
}
