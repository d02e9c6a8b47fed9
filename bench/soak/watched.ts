// What a server uses, seen from outside: its memory, its processor time, its data folder.
import type { Stats } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';

/** Bytes of its RSS. */
export async function rssBytesOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
}

export interface DiskUse {
  /** That the file system counts, as du does. */
  bytes: number;
  extentCount: number;
}

/** Of a folder with all that is in it. */
export async function diskUseOf(folder: string): Promise<DiskUse> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const use: DiskUse = { bytes: 0, extentCount: 0 };
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const found = await statOf(join(entry.parentPath, entry.name));
    use.bytes += (found?.blocks ?? 0) * 512;
    if (basename(entry.parentPath) === 'extents') use.extentCount++;
  }
  return use;
}

/** undefined: it is gone since it was listed. */
async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch {
    return undefined;
  }
}

/** Figures of `GET /metrics` that have no labels, by name. */
export async function metricsOf(endpoint: string): Promise<Map<string, number>> {
  const answer = await fetch(`${endpoint}/metrics`);
  const found = new Map<string, number>();
  for (const line of (await answer.text()).split('\n')) {
    const [name = '', value] = line.split(' ');
    if (!line.startsWith('#') && value !== undefined && !name.includes('{')) found.set(name, Number(value));
  }
  return found;
}
