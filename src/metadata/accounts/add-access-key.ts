// Adds an access key to an account. No gateway has cached a key that did not exist, so none has to be notified.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import { accessKeyCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accessKeyRow, accountAccessKeyRow, PRESENT, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findAccessKey, listAccessKeys } from './access-keys.ts';
import { findLiveAccount } from './accounts.ts';

export const addAccessKey = defineCommand<CommandOf<'add-access-key'>, OutcomeOf<'add-access-key'>>({
  locks: ({ accountId }) => [exclusive(LOCK.accounts), exclusive(LOCK.account(accountId))],

  look({ accountId, accessKey }, view) {
    findLiveAccount(view, accountId);
    listAccessKeys(view, accountId);
    findAccessKey(view, accessKey.accessKey);
  },

  decide({ accountId, accessKey }, view, { nowMs }) {
    if (findLiveAccount(view, accountId) === undefined) return refuse({ kind: 'no-such-account' });
    if (findAccessKey(view, accessKey.accessKey) !== undefined) return refuse({ kind: 'taken' });
    if (listAccessKeys(view, accountId).length >= LIMITS.accessKeysPerAccountMax)
      return refuse({ kind: 'too-many-keys' });
    const record = { ...accessKey, accountId, createdAtMs: nowMs };
    return {
      outcome: { kind: 'added', accessKey: record },
      puts: [
        put(accessKeyRow(record.accessKey), accessKeyCodec.encode(record)),
        put(accountAccessKeyRow(accountId, record.accessKey), PRESENT),
      ],
    };
  },
});
