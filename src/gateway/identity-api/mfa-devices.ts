// Virtual MFA devices: made with a seed that is shown once, enabled for a user or the account's root by two codes, synchronised
// anew, deactivated, removed, listed.

import {
  type IdentityStore,
  type IdentityStoreDependencies,
  withIdentities,
} from '../../accounts/identity-store.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId } from '../../types/names.ts';
import { identityKeys, type MfaDeviceRecord, type UserRecord } from '../../types/records/identity-records.ts';
import type { IdentityCaller } from './authorize-action.ts';
import { type AccessTarget, type ActionContext, ANY_RESOURCE, defineIamAction } from './iam-action.ts';
import { checkTags, paging, pathOrRoot, tags, userName } from './identity-parameters.ts';
import { pageOf, pageOfRows, pageXml } from './list-pages.ts';
import { findMfaDevice, matchCodes, serialOf } from './mfa-codes.ts';
import { SEED_BYTES, seedAsPng, seedInBase32, stepAt } from './one-time-codes.ts';
import { choice, constraintError, orElse, required, text } from './parameter-rules.ts';
import { xmlTime } from './query-protocol.ts';
import type { QueryAction } from './query-service.ts';
import { requireUser, tagsXml, userNameOf, userTarget, userXml } from './users.ts';

const SERIAL_CHARACTERS_MAX = 256;
const serialNumber = required(
  text({ charactersMin: 9, charactersMax: SERIAL_CHARACTERS_MAX, pattern: /^[\w+=/:,.@-]+$/ }),
);
const code = required(text({ charactersMin: 6, charactersMax: 6, pattern: /^\d+$/, isSecret: true }));
const deviceName = required(text({ charactersMax: 226, pattern: /^[\w+=,.@-]+$/ }));

/** Of the seed's 32 sealed bytes the first ones are the seed. */
const SEALED_BYTES = 32;

/** Whose device it is: a user, or the account's root. */
type DeviceOwner = { readonly id: string; readonly devices: readonly string[] } & (
  | { readonly kind: 'root' }
  | { readonly kind: 'user'; readonly user: UserRecord }
);

/** The root names nobody, or the account's id where its program must name somebody. */
async function isRootMeant({ caller, store }: ActionContext, given: string | undefined): Promise<boolean> {
  if (caller.principal.kind !== 'root') return false;
  if (given === undefined) return true;
  return given === store.accountId && (await store.find('user', identityKeys.user(given))) === undefined;
}

/** Throws NoSuchEntity, ValidationError. */
async function requireOwner(context: ActionContext, given: string | undefined): Promise<DeviceOwner> {
  const { store } = context;
  if (await isRootMeant(context, given)) {
    const { rootMfaDevices } = await store.settings();
    return { kind: 'root', id: 'root', devices: rootMfaDevices };
  }
  const user = await requireUser(store, await userNameOf(context, given));
  return { kind: 'user', id: user.id, devices: user.mfaDevices, user };
}

async function ownerTargets({ UserName }: { UserName: string | undefined }, context: ActionContext) {
  const targets: AccessTarget[] = [
    (await isRootMeant(context, UserName))
      ? { resource: context.caller.principal.arn }
      : await userTarget(context, await userNameOf(context, UserName)),
  ];
  return targets;
}

async function writeDevices(
  store: IdentityStore,
  owner: DeviceOwner,
  devices: readonly string[],
): Promise<void> {
  if (owner.kind === 'root') {
    store.putUnseen(identityKeys.settings, { ...(await store.settings()), rootMfaDevices: [...devices] });
  } else {
    store.put(identityKeys.user(owner.user.name), { ...owner.user, mfaDevices: [...devices] });
  }
}

/** Throws NoSuchEntity. */
async function requireDevice(store: IdentityStore, serial: string): Promise<MfaDeviceRecord> {
  const device = await findMfaDevice(store, serial);
  if (device !== undefined) return device;
  const message = `VirtualMFADevice with serial number ${serial} does not exist.`;
  throw new AppError('NoSuchEntity', { message });
}

/** Throws NoSuchEntity for a device that is enabled for somebody else, or for nobody. */
async function requireDeviceOf(
  store: IdentityStore,
  owner: DeviceOwner,
  serial: string,
): Promise<MfaDeviceRecord> {
  const device = await requireDevice(store, serial);
  if (device.enabled?.owner === owner.id) return device;
  throw new AppError('NoSuchEntity', { message: 'MFA Device invalid for user.' });
}

/** Whether a second factor stands behind the caller for which somebody has vouched. */
function isVouchedFor({ identity: { session } }: IdentityCaller): boolean {
  return session?.mfaAtMs !== undefined && session.isMfaUnvouched !== true;
}

/**
 * Throws AccessDenied where owners change their own devices and have shown none: a key of long term alone must not become a
 * second factor. Who looks after users by a policy may change theirs; what he enables is not vouched for.
 */
function requireOwnFactor({ caller }: ActionContext, owner: DeviceOwner): void {
  const isOwn = owner.id === caller.identity.id;
  if (!isOwn || owner.devices.length === 0 || caller.identity.session?.mfaAtMs !== undefined) return;
  const message =
    'Who has an MFA device changes the own devices with temporary credentials that were given with MFA (GetSessionToken with SerialNumber and TokenCode).';
  throw new AppError('AccessDenied', { message });
}

/** The device with its clock as two codes show it, and both of them used. Throws InvalidAuthenticationCode. */
function synchronise(
  device: MfaDeviceRecord,
  codes: readonly [string, string],
  { deps, nowMs }: ActionContext,
): MfaDeviceRecord {
  const usedStep = matchCodes(deps.keyring, device, { codes, nowMs });
  if (usedStep === undefined) throw new AppError('InvalidAuthenticationCode');
  return { ...device, usedStep, driftSteps: usedStep - stepAt(nowMs) };
}

const createVirtualMfaDevice = defineIamAction({
  name: 'CreateVirtualMFADevice',
  parameters: { VirtualMFADeviceName: deviceName, Path: pathOrRoot, Tags: tags },
  access: ({ VirtualMFADeviceName: name, Path: path, Tags }, { store }) => [
    { resource: serialOf(store, { path, name }), requestTags: Tags },
  ],
  async run({ VirtualMFADeviceName: name, Path: path, Tags = [] }, { store, deps, nowMs, caller }) {
    checkTags(Tags);
    const serial = serialOf(store, { path, name });
    if (serial.length > SERIAL_CHARACTERS_MAX) {
      const max = path.length - (serial.length - SERIAL_CHARACTERS_MAX);
      throw constraintError('Path', path, `have length less than or equal to ${Math.max(1, max)}`);
    }
    const key = identityKeys.mfaDevice(name);
    if ((await store.find('mfa-device', key)) !== undefined) {
      const message = 'MFADevice entity at the same path and name already exists.';
      throw new AppError('EntityAlreadyExists', { message });
    }
    await store.count('mfaDevice', { add: 1, max: LIMITS.mfaDevicesMax });
    const sealed = deps.random.bytes(SEALED_BYTES);
    const seed = sealed.subarray(0, SEED_BYTES);
    const label = { deviceName: name, accountName: caller.account.name };
    store.putUnseen(key, {
      kind: 'mfa-device',
      name,
      path,
      createdAtMs: nowMs,
      sealedSeed: deps.keyring.wrap(sealed),
      tags: Tags,
    });
    return async () => {
      // To draw it takes some 10 ms.
      await deps.turns.take({ owner: store.accountId, work: 'identities' });
      return xmlElement(
        'VirtualMFADevice',
        xmlText('SerialNumber', serial),
        xmlText('Base32StringSeed', Buffer.from(seedInBase32(seed)).toString('base64')),
        xmlText('QRCodePNG', Buffer.from(seedAsPng(seed, label)).toString('base64')),
        Tags.length > 0 ? tagsXml(Tags) : '',
      );
    };
  },
});

const deleteVirtualMfaDevice = defineIamAction({
  name: 'DeleteVirtualMFADevice',
  parameters: { SerialNumber: serialNumber },
  access: ({ SerialNumber }) => [{ resource: SerialNumber }],
  async run({ SerialNumber }, { store }) {
    const { name, enabled } = await requireDevice(store, SerialNumber);
    if (enabled !== undefined) {
      throw new AppError('DeleteConflict', { message: 'MFA VirtualDevice in use. Must deactivate first.' });
    }
    store.removeUnseen(identityKeys.mfaDevice(name));
    await store.count('mfaDevice', { add: -1 });
    return undefined;
  },
});

const OWNED = { UserName: userName, SerialNumber: serialNumber } as const;
const CODES = { AuthenticationCode1: code, AuthenticationCode2: code } as const;

const enableMfaDevice = defineIamAction({
  name: 'EnableMFADevice',
  parameters: { ...OWNED, ...CODES },
  access: ownerTargets,
  async run({ UserName, SerialNumber, AuthenticationCode1, AuthenticationCode2 }, context) {
    const { store, nowMs, caller } = context;
    const owner = await requireOwner(context, UserName);
    const device = await requireDevice(store, SerialNumber);
    if (device.enabled !== undefined) {
      throw new AppError('EntityAlreadyExists', { message: 'MFA Device is already in use.' });
    }
    requireOwnFactor(context, owner);
    if (owner.devices.length >= LIMITS.mfaDevicesPerOwnerMax) {
      const message = `Cannot exceed quota for MFADevicesPerUser: ${LIMITS.mfaDevicesPerOwnerMax}`;
      throw new AppError('LimitExceeded', { message });
    }
    const enabled = synchronise(device, [AuthenticationCode1, AuthenticationCode2], context);
    // Nobody else can enable one of the root, and before its first one there is nothing to vouch with.
    const isFirstOfRoot = owner.kind === 'root' && owner.devices.length === 0;
    const isUnvouched = !isFirstOfRoot && !isVouchedFor(caller);
    store.putUnseen(identityKeys.mfaDevice(device.name), {
      ...enabled,
      enabled: { owner: owner.id, atMs: nowMs, ...(isUnvouched && { isUnvouched }) },
    });
    await writeDevices(store, owner, [...owner.devices, device.name]);
    return undefined;
  },
});

const resyncMfaDevice = defineIamAction({
  name: 'ResyncMFADevice',
  parameters: { ...OWNED, ...CODES },
  access: ownerTargets,
  async run({ UserName, SerialNumber, AuthenticationCode1, AuthenticationCode2 }, context) {
    const { store } = context;
    const device = await requireDeviceOf(store, await requireOwner(context, UserName), SerialNumber);
    const synchronised = synchronise(device, [AuthenticationCode1, AuthenticationCode2], context);
    store.putUnseen(identityKeys.mfaDevice(device.name), synchronised);
    return undefined;
  },
});

const deactivateMfaDevice = defineIamAction({
  name: 'DeactivateMFADevice',
  parameters: OWNED,
  access: ownerTargets,
  async run({ UserName, SerialNumber }, context) {
    const { store } = context;
    const owner = await requireOwner(context, UserName);
    // Codes that were used stay so, should it be enabled again.
    const { enabled: _, ...device } = await requireDeviceOf(store, owner, SerialNumber);
    requireOwnFactor(context, owner);
    store.putUnseen(identityKeys.mfaDevice(device.name), device);
    await writeDevices(
      store,
      owner,
      owner.devices.filter((name) => name !== device.name),
    );
    return undefined;
  },
});

const listMfaDevices = defineIamAction({
  name: 'ListMFADevices',
  parameters: { UserName: userName, ...paging },
  access: ownerTargets,
  async run({ UserName, ...page }, context) {
    const { store } = context;
    const owner = await requireOwner(context, UserName);
    const devices = await store.findAll('mfa-device', owner.devices.map(identityKeys.mfaDevice));
    const enabled = devices.filter((device) => device !== undefined);
    const { items, next } = pageOf(enabled, ({ name }) => name, page);
    const members = items.map((device) =>
      [
        xmlText('UserName', owner.kind === 'user' ? owner.user.name : store.accountId),
        xmlText('SerialNumber', serialOf(store, device)),
        xmlTime('EnableDate', device.enabled?.atMs ?? 0),
      ].join(''),
    );
    return pageXml('MFADevices', members, next);
  },
});

const listVirtualMfaDevices = defineIamAction({
  name: 'ListVirtualMFADevices',
  parameters: { AssignmentStatus: orElse(choice(['Assigned', 'Unassigned', 'Any']), 'Any'), ...paging },
  access: () => [ANY_RESOURCE],
  async run({ AssignmentStatus, ...page }, context) {
    const { store } = context;
    const { items, next } = await pageOfRows(
      store,
      {
        kind: 'mfa-device',
        prefix: identityKeys.mfaDevice(''),
        async show(rows) {
          const shown = rows.filter(({ record: { enabled } }) => {
            const status = enabled === undefined ? 'Unassigned' : 'Assigned';
            return AssignmentStatus === 'Any' || AssignmentStatus === status;
          });
          const owners = shown.flatMap(({ record: { enabled } }) => enabled?.owner ?? []);
          const users = await usersById(store, owners);
          return shown.map(({ key, record }) => ({ key, item: deviceXml(context, record, users) }));
        },
        charactersOf: (xml) => xml.length,
      },
      page,
    );
    return pageXml('VirtualMFADevices', items, next);
  },
});

function deviceXml(
  context: ActionContext,
  device: MfaDeviceRecord,
  users: ReadonlyMap<string, UserRecord>,
): string {
  const { enabled } = device;
  const serial = xmlText('SerialNumber', serialOf(context.store, device));
  if (enabled === undefined) return serial;
  return (
    serial + xmlElement('User', ownerXml(context, enabled.owner, users)) + xmlTime('EnableDate', enabled.atMs)
  );
}

async function usersById(
  store: IdentityStore,
  ids: readonly string[],
): Promise<ReadonlyMap<string, UserRecord>> {
  const indices = await store.findAll('index', ids.map(identityKeys.id));
  const users = await store.lookAll(
    'user',
    indices.flatMap((index) => index?.to ?? []),
  );
  return new Map(users.flatMap((user) => (user === undefined ? [] : [[user.id, user]])));
}

function ownerXml(
  { store, caller }: ActionContext,
  id: string,
  users: ReadonlyMap<string, UserRecord>,
): string {
  const user = users.get(id);
  if (user !== undefined) return userXml(store, user, { isWhole: false });
  return [
    xmlText('UserId', store.accountId),
    xmlText('Arn', `arn:aws:iam::${store.accountId}:root`),
    xmlTime('CreateDate', caller.account.createdAtMs),
  ].join('');
}

/**
 * Deactivates the devices of the account's root, which are lost; how many there were. The operator's way: nothing of the account
 * is asked. Throws ServiceUnavailable, ConcurrentModification.
 */
export function resetRootMfa(deps: IdentityStoreDependencies, accountId: AccountId): Promise<number> {
  return withIdentities(deps, accountId, async (store) => {
    const { rootMfaDevices, ...settings } = await store.settings();
    const devices = await store.findAll('mfa-device', rootMfaDevices.map(identityKeys.mfaDevice));
    for (const found of devices) {
      if (found?.enabled?.owner !== 'root') continue;
      const { enabled: _, ...device } = found;
      store.putUnseen(identityKeys.mfaDevice(device.name), device);
    }
    if (rootMfaDevices.length > 0)
      store.putUnseen(identityKeys.settings, { ...settings, rootMfaDevices: [] });
    return rootMfaDevices.length;
  });
}

export const MFA_DEVICE_ACTIONS: readonly QueryAction[] = [
  createVirtualMfaDevice,
  deleteVirtualMfaDevice,
  enableMfaDevice,
  resyncMfaDevice,
  deactivateMfaDevice,
  listMfaDevices,
  listVirtualMfaDevices,
];
