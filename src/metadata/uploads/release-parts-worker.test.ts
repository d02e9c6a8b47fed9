import { expect, test } from 'vitest';
import { BUCKET, beginUpload, putPart } from '../../../tests/support/metadata/metadata-shards.ts';
import { openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import type { ObjectKey, UploadId } from '../../types/names.ts';

test('parts of an upload that cannot end do not delay those behind it', async () => {
  const background = await openBackground();
  const { world } = background;
  const uploads: UploadId[] = [];
  // More than a page of them.
  for (let at = 0; at < 45; at++) {
    const key = `k${at}` as ObjectKey;
    const uploadId = await beginUpload(world, key);
    await putPart(world, { key, uploadId }, { partNumber: 1, data: await background.newStored(1) });
    await world.execute('abort-upload', { bucketId: BUCKET, key, uploadId });
    uploads.push(uploadId);
    world.clock.advance(1000);
  }
  const { execute } = world.shards;
  world.shards.execute = async (envelope, name, command) => {
    const isOfOne = name === 'release-parts' && 'uploadId' in command;
    const isPoisoned = isOfOne && uploads.slice(0, 21).includes(command.uploadId);
    return isPoisoned ? { kind: 'unknown' } : execute(envelope, name, command);
  };
  const ended = async () => (await world.query('list-ended-uploads', { limit: 99 })).ended;
  await expect(background.run('parts')).rejects.toThrow();
  for (let page = 1; page < 4; page++) await background.run('parts').catch(() => {});
  expect((await ended()).map(({ uploadId }) => uploadId)).toEqual(uploads.slice(0, 21));
  world.shards.execute = execute;
  // To the end of the look that is under way, and then from what was left.
  await background.run('parts');
  await background.run('parts');
  expect(await ended()).toEqual([]);
});
