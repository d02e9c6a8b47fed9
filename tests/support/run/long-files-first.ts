// The order of test files within a run. Files that wait or work longest begin, so that the end of a group does not wait for
// one file alone. A fresh clone has no times of an earlier run, and vitest would begin with the largest files.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The files that take longest, as measured on two cores; the longest first. */
const LONGEST: readonly string[] = [
  'cluster/faults',
  'cluster/api',
  'cluster/restic',
  'cluster/disks',
  'cluster/grow',
  'cluster/recover',
  'cluster/damage',
  'clients/aws-cli',
  'cluster/full-disks',
  'cluster/run',
  'cluster/compose',
  'cluster/metadata-nodes',
  'clients/boto3',
  'cluster/several-disks',
  'api/decision-matrix',
  'models/retention-table',
  'faults/kill',
  'faults/startup',
  'faults/stopping',
  'faults/fsck',
  'faults/lost-table',
  'simulation/seeds',
  'alone/hostile',
  'alone/hung-node',
  'alone/held-loop',
  'alone/memory',
];

/** Its place in the list; behind it for a file that is not there. */
function placeOf({ moduleId }: TestSpecification): number {
  const place = LONGEST.findIndex((name) => moduleId.endsWith(`/tests/${name}.test.ts`));
  return place === -1 ? LONGEST.length : place;
}

/** Vitest's own order with the longest files first; the order of groups stays. */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = (file: TestSpecification) => file.project.config.sequence.groupOrder;
    return (await super.sort(files)).toSorted((a, b) => order(a) - order(b) || placeOf(a) - placeOf(b));
  }
}
