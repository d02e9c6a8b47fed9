// The changes of identities since a gateway last asked (R46).

import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { masterKeysCodec } from '../../types/records/master-keys-record.ts';
import { identityChangeCodec } from '../../types/records/rows.ts';
import { MASTER_KEYS_ROW } from '../schema/keyspace.ts';
import { identityChangeRange, LAST_IDENTITY_CHANGE, positionOf } from './identity-changes.ts';

export const findIdentityChanges: QuerySpec<QueryOf<'identity-changes'>, ResultOf<'identity-changes'>> = {
  async run({ since }, state) {
    const [masterKeysRow] = await state.rows([MASTER_KEYS_ROW]);
    const masterKeys = masterKeysRow && { masterKeys: masterKeysCodec.decode(masterKeysRow) };
    if (since !== undefined) {
      // One look, at one moment: the change that the gateway has seen last, and all behind it.
      const rows = await state.range(identityChangeRange(since.seq));
      const first = positionOf(rows[0]);
      if (first.seq === since.seq && first.mark === since.mark) {
        const changes = rows.slice(1).map(({ value }) => ({
          accountId: identityChangeCodec.decode(value).accountId,
        }));
        return { kind: 'changes', upTo: positionOf(rows.at(-1)), changes, ...masterKeys };
      }
    }
    const [last] = await state.range(LAST_IDENTITY_CHANGE);
    return { kind: 'reset', upTo: positionOf(last), ...masterKeys };
  },
};
