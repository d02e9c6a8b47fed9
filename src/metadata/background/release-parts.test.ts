import { expect, test } from 'vitest';
import { BUCKET, beginUpload, putPart } from '../../../tests/support/metadata-shards.ts';
import { openBackground } from '../../../tests/support/metadata-workers.ts';
import type { ObjectKey, UploadId } from '../../model/names.ts';

test('parts of an upload that cannot end keep none that ended behind it', async () => {
  const background = await openBackground();
  const { world } = background;
  const uploads: UploadId[] = [];
  for (const name of ['a', 'b', 'c']) {
    const key = name as ObjectKey;
    const uploadId = await beginUpload(world, name);
    await putPart(world, { key, uploadId }, { partNumber: 1, data: await background.newStored(1) });
    await world.execute('abort-upload', { bucketId: BUCKET, key, uploadId });
    uploads.push(uploadId);
    world.clock.advance(1000);
  }
  const { execute } = world.shards;
  world.shards.execute = async (envelope, name, command) => {
    const isPoisoned = name === 'release-parts' && 'uploadId' in command && command.uploadId === uploads[0];
    return isPoisoned ? { kind: 'unknown' } : execute(envelope, name, command);
  };
  const ended = async () => (await world.query('list-ended-uploads', { limit: 9 })).ended;
  await expect(background.run('parts')).rejects.toThrow();
  expect((await ended()).map(({ uploadId }) => uploadId)).toEqual([uploads[0]]);
  world.shards.execute = execute;
  await background.run('parts');
  expect(await ended()).toEqual([]);
});
