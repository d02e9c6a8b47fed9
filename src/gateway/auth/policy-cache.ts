// Compiled policies by their text. Compiling costs some hundred microseconds, of the longest several ms, and the same text is used by
// many principals and requests.
import { createFairTurns, type FairTurns } from '../../base/async/fair-turns.ts';
import { finishAtOnce } from '../../base/async/steps.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { ownText } from '../../base/text/own-text.ts';
import {
  type CompiledPolicy,
  compileStoredInSteps,
  compileStoredPolicy,
} from '../../policy/documents/compile-policy.ts';
import type { NamedPolicy } from '../../policy/evaluate.ts';

type DocumentType = Parameters<typeof compileStoredPolicy>[1];

const ENTRIES_MAX = 2000;
/** Of what is compiled, with its texts. */
const BYTES_MAX = 32 * 1024 * 1024;

interface Entry {
  readonly policy: CompiledPolicy;
  readonly bytes: number;
}

/** Longer ones are compiled in turns with those of other accounts: a user may have a hundred of the longest. */
const SHORT_CHARACTERS_MAX = 500;

interface StoredPolicy {
  readonly name: string;
  readonly text: string;
  readonly type: DocumentType;
  /** Who waits for it: accounts take turns. */
  readonly accountId: string;
  readonly ids?: NamedPolicy['ids'];
}

export interface PolicyCache {
  /** A stored document. One that cannot be read any more denies everything. */
  named(policy: StoredPolicy): Promise<NamedPolicy>;
}

export function createPolicyCache(turns: FairTurns = createFairTurns()): PolicyCache {
  const compiled = new BoundedMap<string, Entry>(ENTRIES_MAX, {
    weightMax: BYTES_MAX,
    weightOf: ({ bytes }) => bytes,
  });
  /** Also those that only callers still hold: whoever asks for one more texts than are kept gets no second copy of any. */
  const held = createHeld();
  /** Many who wait for one text do not each compile it. */
  const underWay = new Map<string, Promise<CompiledPolicy>>();

  function keep(key: string, policy: CompiledPolicy): void {
    compiled.set(key, { policy, bytes: key.length + policy.memoryBytes });
  }

  async function compile(key: string, { text, type, accountId }: StoredPolicy): Promise<CompiledPolicy> {
    const steps = compileStoredInSteps(text, type);
    const isShort = text.length <= SHORT_CHARACTERS_MAX;
    const outcome = isShort
      ? finishAtOnce(steps)
      : await turns.finish({ owner: accountId, work: 'policies' }, steps);
    const policy = outcome.kind === 'compiled' ? outcome.policy : denyAll(type);
    keep(key, policy);
    held.set(key, policy);
    return policy;
  }

  return {
    async named(stored) {
      const { name, ids } = stored;
      const kept = ids === undefined ? { name } : { name, ids };
      const key = `${stored.type}:${stored.text}`;
      const known = compiled.get(key);
      if (known !== undefined) return { ...kept, policy: known.policy };
      const policy = held.get(key);
      if (policy !== undefined) {
        keep(key, policy);
        return { ...kept, policy };
      }
      let making = underWay.get(key);
      if (making === undefined) {
        making = compile(key, stored).finally(() => underWay.delete(key));
        underWay.set(key, making);
      }
      return { ...kept, policy: await making };
    },
  };
}

/** By their texts, as long as anybody holds them. */
function createHeld() {
  const policies = new Map<string, WeakRef<CompiledPolicy>>();
  const gone = new FinalizationRegistry<string>((key) => {
    if (policies.get(key)?.deref() === undefined) policies.delete(key);
  });
  return {
    get: (key: string) => policies.get(key)?.deref(),
    set(key: string, policy: CompiledPolicy): void {
      const own = ownText(key);
      policies.set(own, new WeakRef(policy));
      gone.register(policy, own);
    },
  };
}

function denyAll(type: DocumentType): CompiledPolicy {
  const everybody = type === 'resource' || type === 'trust' ? { Principal: '*' } : {};
  const resource = type === 'trust' ? {} : { Resource: '*' };
  const Statement = [{ Effect: 'Deny', Action: '*', ...everybody, ...resource }];
  const outcome = compileStoredPolicy(JSON.stringify({ Version: '2012-10-17', Statement }), type);
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return outcome.policy;
}
