// Versions that have to stay, for tests of what becomes of what would take them away: a rule in the place of the product's
// (types/delete-blocker.ts), which keeps the versions with these ETags and no other.
import type { DeleteRules } from '../../../src/types/delete-blocker.ts';

export interface ProtectedVersions {
  rules: DeleteRules;
  keep(...etags: string[]): void;
  letGo(): void;
}

export function createProtectedVersions(): ProtectedVersions {
  const kept = new Set<string>();
  return {
    rules: {
      mayBlockDeletes: () => kept.size > 0,
      deleteBlocker: ({ etag }) => (kept.has(etag) ? { by: 'retention' } : undefined),
    },
    keep: (...etags) => {
      for (const etag of etags) kept.add(etag);
    },
    letGo: () => kept.clear(),
  };
}
