// Bugs that the simulation must find (protocol 4), each as the change of one place in the product that makes it. A place
// that is not there any more, or is there twice, is an error: so the table stays true.

export interface BugPlace {
  file: string;
  from: string;
  to: string;
}

export interface PlantedBug extends BugPlace {
  name: string;
  /** What is broken by it, by protocol 1.9; or the rule alone, where others make up for it. */
  breaks: string;
  /** Another place that keeps the same rule by itself. */
  also?: BugPlace;
}

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'apply before commit',
    breaks: 'I4',
    file: 'src/shard/follower.ts',
    from: 'applier.advance(Math.min(Math.max(commitSeq, this.#snapshot.endSeq), this.#matched.seq));',
    to: 'applier.advance(this.#matched.seq);',
  },
  {
    name: 'acknowledge by log length',
    breaks: 'I2',
    file: 'src/shard/follower.ts',
    from: '      matchSeq: this.#matched.seq,',
    to: '      matchSeq: this.#parts.log.last.seq,',
  },
  {
    name: 'promise not synced',
    breaks: 'I2',
    file: 'src/shard/promises.ts',
    from: '    await this.#save();\n    // One that does not count has',
    to: '    // One that does not count has',
  },
  {
    name: 'lease from the time of receipt',
    breaks: 'I3',
    file: 'src/shard/primary-term.ts',
    from: 'progress.answeredMs = Math.max(progress.answeredMs, message.echoMs);',
    to: 'progress.answeredMs = this.#now();',
  },
  {
    name: 'no promise after a restart',
    breaks: 'I3',
    file: 'src/shard/promises.ts',
    from: '(isNew ? 0 : SILENCE_MS)',
    to: '(isNew ? 0 : 0)',
  },
  {
    name: 'entries of earlier epochs counted',
    breaks: 'I2',
    file: 'src/shard/primary-term.ts',
    from: 'if (reached <= this.#commitSeq || log.epochAt(reached) !== epoch) return;',
    to: 'if (reached <= this.#commitSeq) return;',
  },
  {
    name: 'own promise ignored in a takeover',
    breaks: 'I3',
    file: 'src/shard/takeover.ts',
    from: 'const isFree = clock.monotonicMs() >= silentUntilMs();',
    to: 'const isFree = true;',
    also: {
      file: 'src/shard/replica.ts',
      from: "if (this.#role.kind === 'candidate') this.#stepDown('another leads');",
      to: "if (this.#role.kind === 'candidate' && epoch > this.#promises.epoch) this.#stepDown('another leads');",
    },
  },
  {
    name: 'shorter log adopted',
    breaks: 'I2',
    file: 'src/shard/takeover.ts',
    from: 'return a.epoch > b.epoch || (a.epoch === b.epoch && a.seq > b.seq);',
    to: 'return a.epoch < b.epoch || (a.epoch === b.epoch && a.seq < b.seq);',
  },
  {
    name: 'snapshot live before its end',
    breaks: 'I5',
    file: 'src/shard/follower.ts',
    from: 'this.#liveFromSeq ??= Math.max(commitSeq, this.#snapshot.endSeq);',
    to: 'this.#liveFromSeq ??= 0;',
  },
  {
    name: 'refusal answered at once',
    breaks: 'I4',
    file: 'src/shard/replicated-log.ts',
    from: 'else this.#waiters.push({ seq, done });',
    to: 'else void this.#tellWhenConfirmed(done);',
  },
  {
    name: 'witness ignored',
    breaks: 'I2',
    file: 'src/shard/open-replica.ts',
    from: ': witnessed !== undefined && (log.last.seq < witnessed.seq',
    to: ': witnessed !== undefined && log.last.seq < 0 && (log.last.seq < witnessed.seq',
  },
  {
    name: 'name of a bucket not checked',
    breaks: 'I13',
    file: 'src/metadata/buckets.ts',
    from: 'isServed && bucket.name === envelope.name && bucket.cfgVersion === envelope.cfgVersion;',
    to: 'isServed;',
  },
  {
    name: 'name check left out',
    breaks: 'I7',
    file: 'src/metadata/buckets.ts',
    from: 'isServed && bucket.name === envelope.name && bucket.cfgVersion',
    to: 'isServed && bucket.cfgVersion',
  },
  {
    name: 'rename onto a name that is taken',
    breaks: 'I13',
    file: 'src/metadata/commands/begin-rename.ts',
    from: 'if (obstacle !== undefined) return',
    to: 'if (obstacle === null) return',
  },
  {
    name: 'rename decided twice',
    breaks: 'I13',
    file: 'src/metadata/commands/rename-bucket.ts',
    from: `if (before.nameEpoch > nameEpoch || before.state === 'deleted') return refuse({ kind: 'refused' });
    const isGranted = before.state === 'open' && before.nameEpoch === nameEpoch && before.name === from;`,
    to: `if (before.state === 'deleted') return refuse({ kind: 'refused' });
    const isGranted = before.state === 'open' && before.name === from;`,
  },
  {
    name: 'name of another bucket forgotten',
    breaks: 'I13',
    file: 'src/metadata/commands/forget-name.ts',
    from: 'if (before?.bucketId !== bucketId) return',
    to: 'if (before === undefined) return',
  },
  {
    name: 'age test left out of births',
    breaks: 'I9',
    file: 'src/metadata/links.ts',
    from: 'return ageMs > LIMITS.blobIdAgeMaxMs || -ageMs > LIMITS.blobIdAheadMaxMs;',
    to: 'return -ageMs > LIMITS.blobIdAheadMaxMs;',
  },
  {
    name: 'age test left out of commits of claims',
    breaks: 'I9',
    file: 'src/metadata/links.ts',
    from: 'return claim !== undefined && nowMs - idTimeMs(linkId) > LIMITS.linkIdAgeMaxMs;',
    to: 'return claim !== undefined && idTimeMs(linkId) - nowMs > LIMITS.linkIdAgeMaxMs;',
  },
  {
    name: 'claim dropped by its age alone',
    breaks: 'I9',
    file: 'src/metadata/background/resolve-claims.ts',
    from: 'const isTooLate = tick.timeMs - idTimeMs(linkId) > LIMITS.linkIdAgeMaxMs;',
    to: 'const isTooLate = tick.timeMs - idTimeMs(linkId) > LIMITS.claimResolveAfterMs;',
  },
  {
    name: 'link on a condemned blob',
    breaks: 'I9',
    file: 'src/metadata/links.ts',
    from: 'return isLiveBlob(findBlob(view, blobId));',
    to: 'return findBlob(view, blobId) !== undefined;',
  },
  {
    name: 'condemned with links left',
    breaks: 'I9',
    file: 'src/metadata/commands/condemn-blobs.ts',
    from: 'const unlinked = blobsOf(ended).filter((blobId) => !hasLinks(blobId, view));',
    to: 'const unlinked = blobsOf(ended).filter((blobId) => hasLinks(blobId, view) !== undefined);',
  },
  {
    name: 'release not sent',
    breaks: 'I16',
    file: 'src/metadata/commands/condemn-blobs.ts',
    from: 'return [remove(foreignRow(blobId)), put(outboxRow(id), outboxCodec.encode(release))];',
    to: 'return [remove(foreignRow(blobId)), put(outboxRow(id), outboxCodec.encode(release))].slice(0, 1);',
  },
  {
    name: 'claim in place of another',
    breaks: 'I16',
    file: 'src/metadata/links.ts',
    from: 'if (stored === undefined) return [link,',
    to: 'if (stored !== null) return [link,',
  },
  {
    name: 'chunk acknowledged after one copy',
    breaks: 'I11',
    file: 'src/cluster/write-needs.ts',
    from: 'Math.max(1, Math.min(LIMITS.copiesSyncedMin, copiesWanted, counted.length))',
    to: '1',
  },
  {
    name: 'chunks swept by the clock of the sweeper',
    breaks: 'I11',
    file: 'src/storage/sweep-chunks.ts',
    from: 'tick.timeMs - idTimeMs(blobId) > LIMITS.blobIdAgeMaxMs',
    to: 'tick.timeMs > 0',
  },
  {
    name: 'append decided by the version that was read',
    breaks: 'I7',
    file: 'src/metadata/commands/append-version.ts',
    from: '    exclusive(LOCK.key(command.bucketId, command.key)),',
    to: '    shared(LOCK.key(command.bucketId, command.key)),',
  },
  {
    name: 'links of what a MOVE replaced not ended',
    breaks: 'I16',
    file: 'src/metadata/move-history.ts',
    from: 'puts.push(...endLinks(linksOf(gone.manifest), nowMs));',
    to: 'puts.push(...endLinks(linksOf(gone.manifest).slice(0, 0), nowMs));',
  },
  {
    name: 'MOVE leaves its source where it was',
    breaks: 'I7',
    file: 'src/metadata/move-history.ts',
    from: 'const puts = [remove(latestRow(source, from)), put(',
    to: 'const puts = [put(',
  },
  {
    name: 'append takes over the links of a version that stays',
    breaks: 'I9',
    file: 'src/metadata/commands/append-version.ts',
    from: 'const takesItsPlace = takesPlaceOf(before, bucket.versioning);',
    to: 'const takesItsPlace = true;',
  },
  {
    name: 'MOVE leaves the delete marker behind',
    breaks: 'I7',
    file: 'src/metadata/move-history.ts',
    from: 'const puts = [remove(latestRow(source, from)), put(',
    to: 'const puts = [remove(currentRow(bucketId, from)), put(',
  },
  {
    name: 'ids of older versions do not travel with a MOVE',
    breaks: 'I7',
    file: 'src/metadata/move-history.ts',
    from: 'puts.push(put(versionIdRow(bucketId, to, versionId), u48(base + order)));',
    to: '',
  },
  {
    name: 'nothing follows the latest version that is removed',
    breaks: 'I9',
    file: 'src/metadata/commands/delete-versions.ts',
    from: 'removalsMax: removalsMax + removalCount,',
    to: 'removalsMax,',
  },
  {
    name: 'content of a bucket that was deleted by force left',
    breaks: 'I16',
    file: 'src/metadata/commands/step-closing.ts',
    from: "const change = isEmpty ? dropJob(job) : changeJob(job, { ...job, stage: 'older' });",
    to: 'const change = dropJob(job);',
  },
  {
    name: 'job that was left not driven on',
    breaks: 'I16',
    file: 'src/metadata/background/drive-jobs.ts',
    from: 'mayDrive(job, DRIVER, nowMs)',
    to: 'mayDrive(job, DRIVER, 0 * nowMs)',
  },
  {
    name: 'drop without a look at the map',
    breaks: 'I11',
    file: 'src/storage/disk-orders.ts',
    from: `if (mapVersion < heard || owners.version() < heard) throw new StaleMap(heard);
    if (ids.some((id) => owners.owns(diskId, id))) throw new OwnedHere();`,
    to: 'if (ids.length + heard < 0) throw new OwnedHere();',
    also: {
      file: 'src/storage/disk-orders.ts',
      from: 'if (mapVersion < node.mapVersion()) throw new StaleMap(node.mapVersion());',
      to: '',
    },
  },
  {
    name: 'copies elsewhere dropped while an owner is silent',
    breaks: 'I11',
    file: 'src/cluster/home-disks/chunk-copies.ts',
    from: "this.owners.every((disk) => this.is(disk, 'whole'))",
    to: "this.owners.every((disk) => !this.is(disk, 'missing'))",
  },
  {
    name: 'debt settled without all owners',
    breaks: 'I16',
    file: 'src/metadata/background/repair-debts.ts',
    from: 'its.flatMap((chunk) => owedChunk(chunk, debt)),',
    to: 'its.slice(0, 0).flatMap((chunk) => owedChunk(chunk, debt)),',
  },
  {
    name: 'births by an older map not owed',
    breaks: 'I16',
    file: 'src/model/debts.ts',
    from: 'const isOld = mapVersion < auditedFrom;',
    to: 'const isOld = mapVersion + auditedFrom < 0;',
  },
  {
    name: 'copies that came not to be at a birth not owed',
    breaks: 'I16',
    file: 'src/model/debts.ts',
    from: 'if (ranges.length === 0 && !isOld) return undefined;',
    to: 'if (!isOld) return undefined;',
  },
  {
    name: 'former owners forgotten before all is looked at',
    breaks: 'R39',
    file: 'src/cluster/place-disks.ts',
    from: 'if (audited === undefined || audited < map.auditFrom) return',
    to: 'if (audited === null) return',
  },
  {
    name: 'end of a disk that is cut off not noticed',
    breaks: 'I16',
    file: 'src/storage/witnessed-kv.ts',
    from: "isCut: kept === 'damaged' || answered > stored,",
    to: "isCut: kept === 'damaged',",
  },
  {
    name: 'revocation answered at once',
    breaks: 'I14',
    file: 'src/cluster/delay-revocations.ts',
    from: 'await wait.settle(revokedSeq);',
    to: 'void wait.settle(revokedSeq);',
  },
  {
    name: 'new primary waits for no gateway',
    breaks: 'I14',
    file: 'src/cluster/revocation-wait.ts',
    from: 'begunMs - this.#knownSinceMs < LIMITS.gatewayHeardMs',
    to: 'begunMs - this.#knownSinceMs < 0',
  },
  {
    name: 'cache of keys trusted without news',
    breaks: 'I14',
    file: 'src/cluster/identity-feed.ts',
    from: 'return goodSent !== undefined && passedMs(goodSent, momentNow(clock)) < LIMITS.identityServeMs;',
    to: 'return goodSent !== undefined;',
  },
];
