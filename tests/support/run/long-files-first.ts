// The order of test files within a run. Files that wait or work longest begin, so that the end of a group does not wait for
// one file alone. A fresh clone has no times of an earlier run, and vitest would begin with the largest files.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** These projects begin among those that run beside one another. */
const FIRST_PROJECTS: readonly string[] = ['cluster', 'sim'];

/** The files that take longest, as measured on two cores; of a project the longest first. Clusters that work and that wait by turns. */
const LONGEST: readonly string[] = [
  'cluster/faults',
  'cluster/disks',
  'cluster/api',
  'cluster/grow',
  'cluster/restic',
  'cluster/recover',
  'cluster/damage',
  'cluster/run',
  'cluster/full-disks',
  'cluster/metadata-nodes',
  'cluster/compose',
  'cluster/several-disks',
  'clients/boto3',
  'clients/aws-cli',
  'faults/kill',
  'faults/damage',
  'faults/reclaim',
  'faults/lost-table',
  'simulation/seeds',
  'models/retention-table',
  'api/decision-matrix',
  'api/lifecycle',
  'api/management-document',
  'api/sub-account-commands',
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

/**
 * Vitest's own order, by group and then by project, with the longest files first. Files of one project stay together: a process
 * and the modules that it has loaded serve the next file if that is of the same project, and are given up otherwise.
 */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    const isLater = ({ project }: TestSpecification) => Number(!FIRST_PROJECTS.includes(project.name));
    const byProject = (a: TestSpecification, b: TestSpecification) =>
      isLater(a) - isLater(b) || a.project.name.localeCompare(b.project.name);
    return (await super.sort(files)).toSorted(
      (a, b) => order(a) - order(b) || byProject(a, b) || placeOf(a) - placeOf(b),
    );
  }
}
