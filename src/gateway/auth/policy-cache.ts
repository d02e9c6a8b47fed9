// Compiled policies by their text. Compiling costs some hundred microseconds, and the same text is used by many principals
// and requests.
import { BoundedMap } from '../../base/bounded-map.ts';
import { type CompiledPolicy, compileStoredPolicy } from '../../policy/documents/compile-policy.ts';
import type { NamedPolicy } from '../../policy/evaluate.ts';

type DocumentType = Parameters<typeof compileStoredPolicy>[1];

const ENTRIES_MAX = 2000;
/** Of their texts. What is compiled takes 20 to 50 bytes for each. */
const CHARACTERS_MAX = 4 * 1024 * 1024;

interface Entry {
  readonly policy: CompiledPolicy;
  readonly charactersCount: number;
}

export interface PolicyCache {
  /** A stored document. One that cannot be read any more denies everything. */
  named(policy: { name: string; text: string; type: DocumentType }): NamedPolicy;
}

export function createPolicyCache(): PolicyCache {
  const compiled = new BoundedMap<string, Entry>(ENTRIES_MAX, {
    weightMax: CHARACTERS_MAX,
    weightOf: ({ charactersCount }) => charactersCount,
  });
  return {
    named({ name, text, type }) {
      const key = `${type}:${text}`;
      const known = compiled.get(key);
      if (known !== undefined) return { name, policy: known.policy };
      const outcome = compileStoredPolicy(text, type);
      const policy = outcome.kind === 'compiled' ? outcome.policy : denyAll(type);
      compiled.set(key, { policy, charactersCount: key.length });
      return { name, policy };
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
