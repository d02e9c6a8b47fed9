// Access keys of accounts as the operator manages them: made, disabled, enabled and deleted. The rules are those of
// src/accounts; here is their JSON. A secret is told once, when its key is made.
import type { KeyChange } from '../../../accounts/accounts.ts';
import { AppError } from '../../../types/errors.ts';
import type { AccessKeyRecord } from '../../../types/records/rows.ts';
import { defineEndpoint, readFields } from '../endpoint.ts';

const CHANGES: Readonly<Record<string, KeyChange>> = { active: 'enable', disabled: 'disable' };

function keyJson(key: AccessKeyRecord) {
  return {
    accessKey: key.accessKey,
    state: key.isDisabled === true ? 'disabled' : 'active',
    createdAt: new Date(key.createdAtMs).toISOString(),
  };
}

/** An operator who takes away the key of this very request could not give another one. */
function refuseOwnKey(accessKey: string, signedBy: string): void {
  if (accessKey !== signedBy) return;
  throw new AppError('DeleteConflict', {
    message: 'The request is signed by this access key. Sign it by another one.',
  });
}

export const createAccessKey = defineEndpoint({
  name: 'CreateAccessKey',
  method: 'POST',
  path: '/accounts/:account/keys',
  parse: ({ path, body }) => ({
    reference: path.account ?? '',
    given: readFields(body, { accessKey: 'string', secretKey: 'string' }),
  }),
  async run({ accounts }, { reference, given }) {
    const { account, key, secretKey } = await accounts.addKey(reference, given);
    return { status: 201, json: { ...keyJson(key), secretKey, isRoot: account.isRoot } };
  },
});

export const listAccessKeys = defineEndpoint({
  name: 'ListAccessKeys',
  method: 'GET',
  path: '/accounts/:account/keys',
  parse({ path, body }) {
    readFields(body, {});
    return path.account ?? '';
  },
  async run({ accounts }, reference) {
    return { status: 200, json: { keys: (await accounts.keys(reference)).keys.map(keyJson) } };
  },
});

export const changeAccessKey = defineEndpoint({
  name: 'ChangeAccessKey',
  method: 'PATCH',
  path: '/accounts/:account/keys/:key',
  parse({ path, body, signedBy }) {
    const change = CHANGES[readFields(body, { state: 'string!' }).state];
    if (change === undefined) {
      const problem = 'must be active or disabled';
      throw new AppError('ValidationError', { message: `state ${problem}`, fields: { state: problem } });
    }
    const accessKey = path.key ?? '';
    if (change === 'disable') refuseOwnKey(accessKey, signedBy);
    return { reference: path.account ?? '', accessKey, change };
  },
  async run({ accounts }, { reference, accessKey, change }) {
    await accounts.changeKey(reference, { accessKey, change });
    const { keys } = await accounts.keys(reference);
    const key = keys.find((one) => one.accessKey === accessKey);
    if (key === undefined) throw new AppError('NoSuchEntity');
    return { status: 200, json: keyJson(key) };
  },
});

export const deleteAccessKey = defineEndpoint({
  name: 'DeleteAccessKey',
  method: 'DELETE',
  path: '/accounts/:account/keys/:key',
  parse({ path, body, signedBy }) {
    readFields(body, {});
    const accessKey = path.key ?? '';
    refuseOwnKey(accessKey, signedBy);
    return { reference: path.account ?? '', accessKey };
  },
  async run({ accounts }, { reference, accessKey }) {
    await accounts.changeKey(reference, { accessKey, change: 'delete' });
    return { status: 204 };
  },
});
