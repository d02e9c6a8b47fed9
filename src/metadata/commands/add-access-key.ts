// Gives an account one more access key. No gateway has cached a key that was not there, so none has to hear of it.
import { LIMITS } from '../../model/limits.ts';
import { accessKeyCodec } from '../../model/records/rows.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import { findAccessKey, listAccessKeys } from '../access-keys.ts';
import { findAccount } from '../accounts.ts';
import { defineCommand, exclusive, LOCK } from '../define-command.ts';
import { accessKeyRow, accountAccessKeyRow, PRESENT, put } from '../keyspace.ts';
import { refuse } from '../write-version.ts';

export const addAccessKey = defineCommand<CommandOf<'add-access-key'>, OutcomeOf<'add-access-key'>>({
  locks: ({ accountId }) => [exclusive(LOCK.accounts), exclusive(LOCK.account(accountId))],

  look({ accountId, accessKey }, view) {
    findAccount(view, accountId);
    listAccessKeys(view, accountId);
    findAccessKey(view, accessKey.accessKey);
  },

  decide({ accountId, accessKey }, view, { nowMs }) {
    if (findAccount(view, accountId) === undefined) return refuse({ kind: 'no-such-account' });
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
