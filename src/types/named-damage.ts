// Data that is damaged or missing, in the words of its owner: that is what has to be uploaded again. For operators alone.
import type { FindingPlace } from './findings.ts';
import type { BlobId } from './names.ts';

/** So many are named in one report. `holdfast fsck --read-data` names all. */
export const DAMAGE_NAMED_MAX = 10;

/** A version, or a part of an upload. */
export interface DamagedObject extends Pick<FindingPlace, 'bucket' | 'key' | 'version' | 'upload' | 'part'> {
  /** Which of its data it is. */
  blob: BlobId;
}

export interface UnnamedDamage {
  blob: BlobId;
  /** `not-used`: no version and no part of an upload was found that uses it. `shard-silent`: a shard that may use it does not say. */
  why: 'looked-for' | 'not-used' | 'shard-silent';
}

export interface NamedDamage {
  objects: DamagedObject[];
  unnamed: UnnamedDamage[];
  /** All that are known to be damaged or missing, named here or not. */
  blobCount: number;
}

/** Several as one, with as many as one report names. `blobCount`: where more is known of it than what these say. */
export function joinDamage(all: readonly NamedDamage[], blobCount?: number): NamedDamage {
  const objects = all.flatMap((one) => one.objects).slice(0, DAMAGE_NAMED_MAX);
  const unnamed = all.flatMap((one) => one.unnamed).slice(0, DAMAGE_NAMED_MAX - objects.length);
  const known = all.reduce((sum, one) => sum + one.blobCount, 0);
  return { objects, unnamed, blobCount: blobCount ?? known };
}
