// Compiled policies by their text. Compiling costs some hundred microseconds, and the same text is used by many principals
// and requests.
import { BoundedMap } from '../../base/bounded-map.ts';
import { type CompiledPolicy, compileStoredPolicy } from '../../policy/documents/compile-policy.ts';
import type { NamedPolicy } from '../../policy/evaluate.ts';

type DocumentType = Parameters<typeof compileStoredPolicy>[1];

/** A document has 20 KiB at most: texts take some 40 MiB where all have that. */
const ENTRIES_MAX = 2000;

export interface PolicyCache {
  /** A stored document. One that cannot be read any more denies everything. */
  named(policy: { name: string; text: string; type: DocumentType }): NamedPolicy;
}

export function createPolicyCache(): PolicyCache {
  const compiled = new BoundedMap<string, CompiledPolicy>(ENTRIES_MAX);
  return {
    named({ name, text, type }) {
      const key = `${type}:${text}`;
      let policy = compiled.get(key);
      if (policy === undefined) {
        const outcome = compileStoredPolicy(text, type);
        policy = outcome.kind === 'compiled' ? outcome.policy : denyAll(type);
        compiled.set(key, policy);
      }
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
