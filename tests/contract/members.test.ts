// What every MembersPort promises (src/ports/members.ts).
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Coordination } from '../../src/ports/coordination.ts';
import type { Member } from '../../src/ports/members.ts';
import { memberOf } from '../support/coordination/coordination-records.ts';
import { COORDINATORS, collect, SHORT_LEASE_MS, useCluster } from '../support/coordination/coordinators.ts';

const idsOf = (members: readonly Member[]) => members.map(({ nodeId }) => nodeId).join(' ');

describe.each(COORDINATORS)('%s', (_name, openAll) => {
  const cluster = useCluster(openAll);
  let watcher: Coordination['members'];
  let ending: AbortController;

  beforeEach(() => {
    watcher = cluster.connect('watcher').members;
    ending = new AbortController();
  });
  afterEach(() => {
    ending.abort();
  });

  const watched = () => {
    const told = collect<Member[]>();
    watcher.watch(told.tell, ending.signal);
    return told;
  };
  const announce = (nodeId: string) => {
    const stop = new AbortController();
    ending.signal.addEventListener('abort', () => stop.abort());
    const done = cluster.connect(nodeId).members.announce(memberOf(nodeId), stop.signal);
    return { stop: () => stop.abort(), done };
  };

  test('members come and go, in the order of their ids', async () => {
    const told = watched();
    expect(await told.first(() => true)).toEqual([]);
    const b = announce('b');
    await told.first((members) => idsOf(members) === 'b');
    announce('a');
    const both = await told.first((members) => idsOf(members) === 'a b');
    expect(both).toEqual([memberOf('a'), memberOf('b')]);
    expect(await watcher.current()).toEqual(both);
    b.stop();
    await b.done;
    expect(idsOf(await watcher.current())).toBe('a');
    await told.first((members) => idsOf(members) === 'a');
  });

  test('a late watcher gets all members', async () => {
    announce('a');
    await watched().first((members) => idsOf(members) === 'a');
    const later = await watched().first((members) => members.length > 0);
    expect(later).toEqual([memberOf('a')]);
  });

  test('a member stays beyond its lease', async () => {
    const told = watched();
    announce('a');
    await told.first((members) => idsOf(members) === 'a');
    const lists = told.all.length;
    await new Promise((resolve) => setTimeout(resolve, 2 * SHORT_LEASE_MS));
    expect(told.all).toHaveLength(lists);
    expect(idsOf(await watcher.current())).toBe('a');
  });

  test('a member that is aborted before it began is never listed', async () => {
    const stop = new AbortController();
    stop.abort();
    await watcher.announce(memberOf('a'), stop.signal);
    expect(await watcher.current()).toEqual([]);
  });
});
