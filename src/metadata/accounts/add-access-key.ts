// Adds an access key to an account, beside the others or in the place of all of them. No gateway has cached a key that did not
// exist, so none has to be notified of that one.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import { accessKeyCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accessKeyRow, accountAccessKeyRow, PRESENT, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findAccessKey, isSignerGone, listAccessKeys, lookAtSigner, removeAccessKey } from './access-keys.ts';
import { findLiveAccount } from './accounts.ts';
import { lookAtChanges, noteChange } from './identity-changes.ts';

export const addAccessKey = defineCommand<CommandOf<'add-access-key'>, OutcomeOf<'add-access-key'>>({
  locks: ({ accountId, isOnly }) => [
    exclusive(LOCK.accounts),
    exclusive(LOCK.account(accountId)),
    ...(isOnly ? [exclusive(LOCK.identities)] : []),
  ],

  look({ accountId, accessKey, isOnly, by }, view) {
    lookAtSigner(view, by);
    findLiveAccount(view, accountId);
    listAccessKeys(view, accountId);
    findAccessKey(view, accessKey.accessKey);
    if (isOnly) lookAtChanges(view);
  },

  decide({ accountId, accessKey, isOnly, by }, view, { nowMs, random }) {
    if (isSignerGone(view, by)) return refuse({ kind: 'no-such-signer' });
    if (findLiveAccount(view, accountId) === undefined) return refuse({ kind: 'no-such-account' });
    if (findAccessKey(view, accessKey.accessKey) !== undefined) return refuse({ kind: 'taken' });
    const others = listAccessKeys(view, accountId);
    if (!isOnly && others.length >= LIMITS.accessKeysPerAccountMax) return refuse({ kind: 'too-many-keys' });
    const record = { ...accessKey, accountId, createdAtMs: nowMs };
    const noted = isOnly && noteChange(view, { accountId, random });
    return {
      outcome: { kind: 'added', accessKey: record, ...(noted && { revokedSeq: noted.seq }) },
      puts: [
        ...(isOnly ? others.flatMap((other) => removeAccessKey(accountId, other)) : []),
        put(accessKeyRow(record.accessKey), accessKeyCodec.encode(record)),
        put(accountAccessKeyRow(accountId, record.accessKey), PRESENT),
        ...(noted ? noted.puts : []),
      ],
    };
  },
});
