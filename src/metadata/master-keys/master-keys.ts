// Which master keys a cluster uses: one row of the system shard, replaced as a whole.
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, View } from '../../ports/state-machine.ts';
import { type MasterKeysRecord, masterKeysCodec } from '../../types/records/master-keys-record.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { MASTER_KEYS_ROW, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';

export const setMasterKeys = defineCommand<CommandOf<'set-master-keys'>, OutcomeOf<'set-master-keys'>>({
  locks: () => [exclusive(LOCK.masterKeys)],

  look(_command, view) {
    findMasterKeys(view);
  },

  decide({ ifRevision, masterKeys: changed }, view) {
    const revision = findMasterKeys(view)?.revision ?? 0;
    if (revision !== ifRevision) return refuse({ kind: 'conflict' });
    const masterKeys = { ...changed, revision: revision + 1 };
    const puts = [put(MASTER_KEYS_ROW, masterKeysCodec.encode(masterKeys))];
    return { outcome: { kind: 'set', masterKeys }, puts };
  },
});

function findMasterKeys(view: View): MasterKeysRecord | undefined {
  const row = view.row(MASTER_KEYS_ROW);
  return row && masterKeysCodec.decode(row);
}

/** Who holds them is added by the shard's primary (src/coordination/delay-revocations.ts). */
export const getMasterKeys: QuerySpec<QueryOf<'get-master-keys'>, ResultOf<'get-master-keys'>> = {
  async run(_query, state) {
    const [row] = await state.rows([MASTER_KEYS_ROW]);
    return { masterKeys: row === undefined ? null : masterKeysCodec.decode(row) };
  },
};
