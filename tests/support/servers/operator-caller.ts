// A caller of the operator API for tests that ask it without a gateway.
import type { OperatorCaller } from '../../../src/gateway/operator-api/operator-context.ts';
import type { CallerPolicies } from '../../../src/policy/evaluate.ts';
import { NO_POLICIES } from '../../../src/policy/evaluate.ts';
import type { AccountId } from '../../../src/types/names.ts';
import type { AccountRecord } from '../../../src/types/records/rows.ts';

/** The root of the root account; with policies, a user of it. */
export function operatorCaller(body: Buffer, policies?: CallerPolicies): OperatorCaller {
  const accountId = '100000000001' as AccountId;
  const account = { accountId, isRoot: true } as AccountRecord;
  const arn = `arn:aws:iam::${accountId}:${policies === undefined ? 'root' : 'user/ops'}`;
  const caller = {
    kind: policies === undefined ? ('root' as const) : ('user' as const),
    accountId,
    canonicalId: 'c',
    arn,
  };
  const id = policies === undefined ? 'root' : 'AIDA';
  const principal = { caller, policies: () => policies ?? NO_POLICIES, id, valuesAt: () => () => undefined };
  const accessKey = 'AK';
  const known = { account, accessKey, principal: caller, identity: principal };
  const asker: OperatorCaller['asker'] = {
    ...known,
    contextOf: () => undefined,
    record: {},
    as: () => asker,
  };
  return { account, principal, accessKey, body, asker };
}
