// What test files need beside the npm packages, found by what they import: so a run installs no more than that.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { GROUPS, type GroupName } from './groups.ts';
import { ROOT } from './root.ts';

export type Need = 'client programs' | 'etcd';

/** A file that imports one of these modules needs what it stands for. */
const NEED_OF_MODULE: Readonly<Record<string, Need>> = {
  'tests/support/clients/client-programs.ts': 'client programs',
  'tests/support/cluster/etcd.ts': 'etcd',
  'cmd/cluster/dev-cluster.ts': 'etcd',
};

/** The test files of a group, from the top of the project. */
export function filesOf(group: GroupName): string[] {
  return globSync([...GROUPS[group].include], { cwd: ROOT }).sort();
}

/** What these test files need, by their imports and the imports of those. */
export function needsOf(files: readonly string[]): Set<Need> {
  return new Set(importedBy(files).flatMap((path) => NEED_OF_MODULE[path] ?? []));
}

/** The files themselves and all modules of the project that they load, from the top of the project. */
export function importedBy(files: readonly string[]): string[] {
  const seen = new Set<string>();
  const open = [...files];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path) || !existsSync(join(ROOT, path))) continue;
    seen.add(path);
    const text = readFileSync(join(ROOT, path), 'utf8');
    for (const [, specifier = ''] of text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'/g))
      open.push(relative(ROOT, join(ROOT, dirname(path), specifier)));
  }
  return [...seen];
}
