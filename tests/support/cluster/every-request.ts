// One request of each kind to one bucket, for tests of what becomes of requests while something of the cluster is away. What
// they need is there; each uses up what it changes, and may be sent once in each round.
import { createHash } from 'node:crypto';
import { must } from '../../../src/base/assert.ts';
import { seededBytes } from '../clients/tree.ts';
import { type Access, type RawAnswer, type RawRequest, send } from '../servers/raw-s3.ts';

const MiB = 1024 * 1024;
const SMALL = seededBytes('small', 1000);
const LARGE = seededBytes('large', MiB);

export interface KindOfRequest extends RawRequest {
  name: string;
}

interface Upload {
  id: string;
  etag: string;
}

/** Makes the bucket, with what `rounds` rounds of requests need. Everything must succeed. */
export async function prepareRequests(
  access: Access,
  bucket: string,
  rounds: number,
): Promise<(round: number) => KindOfRequest[]> {
  const ask = async (wanted: RawRequest): Promise<RawAnswer> => {
    const answer = await send(access, wanted);
    const { method, path } = wanted;
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
    return answer;
  };
  const put = (key: string, body = SMALL) => ask({ method: 'PUT', path: `/${bucket}/${key}`, body });
  const begin = async (key: string): Promise<Upload> => {
    const path = `/${bucket}/${key}`;
    const { body } = await ask({ method: 'POST', path: `${path}?uploads` });
    const id = must(/<UploadId>(.*)<\/UploadId>/.exec(body.toString())?.[1], 'an upload id');
    const part = await ask({ method: 'PUT', path: `${path}?partNumber=1&uploadId=${id}`, body: LARGE });
    return { id, etag: must(part.headers.etag, 'an etag') };
  };
  await ask({ method: 'PUT', path: `/${bucket}` });
  await Promise.all([put('small'), put('large', LARGE)]);
  const made: { open: Upload; whole: Upload; aborted: Upload }[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const key of ['deleted', 'one-of-many', 'moved', 'grown', 'p/1']) await put(`${key}-${round}`);
    await ask({ method: 'PUT', path: `/${bucket}-gone-${round}` });
    await ask({ method: 'PUT', path: `/${bucket}-renamed-${round}` });
    const [open, whole, aborted] = await Promise.all(
      ['open', 'whole', 'aborted'].map((key) => begin(`${key}-${round}`)),
    );
    made.push({ open, whole, aborted } as (typeof made)[number]);
  }
  return (round) => requestsOf(bucket, round, must(made[round], 'a round that was prepared'));
}

function requestsOf(
  bucket: string,
  round: number,
  { open, whole, aborted }: { open: Upload; whole: Upload; aborted: Upload },
): KindOfRequest[] {
  const to = (
    name: string,
    method: string,
    rest: string,
    more: Omit<RawRequest, 'method' | 'path'> = {},
  ) => ({
    name,
    method,
    path: `/${bucket}${rest}`,
    ...more,
  });
  const source = { 'x-amz-copy-source': `/${bucket}/large` };
  const manyKeys = `<Delete><Object><Key>one-of-many-${round}</Key></Object></Delete>`;
  const parts = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${whole.etag}</ETag></Part></CompleteMultipartUpload>`;
  const piece = '<Component><Key>small</Key></Component>';
  return [
    to('GetObject small', 'GET', '/small'),
    to('GetObject large', 'GET', '/large'),
    to('HeadObject', 'HEAD', '/small'),
    to('GetObjectTagging', 'GET', '/small?tagging'),
    to('GetObjectAcl', 'GET', '/small?acl'),
    to('PutObject small', 'PUT', `/new-${round}`, { body: SMALL }),
    to('PutObject large', 'PUT', `/new-large-${round}`, { body: LARGE }),
    to('PutObjectTagging', 'PUT', '/small?tagging', { body: Buffer.from('<Tagging><TagSet/></Tagging>') }),
    to('DeleteObject', 'DELETE', `/deleted-${round}`),
    to('DeleteObjects', 'POST', '?delete', {
      body: Buffer.from(manyKeys),
      headers: { 'content-md5': createHash('md5').update(manyKeys).digest('base64') },
    }),
    to('CopyObject', 'PUT', `/copy-${round}`, { headers: source }),
    to('CreateMultipartUpload', 'POST', `/begun-${round}?uploads`),
    to('UploadPart', 'PUT', `/open-${round}?partNumber=2&uploadId=${open.id}`, { body: LARGE }),
    to('UploadPartCopy', 'PUT', `/open-${round}?partNumber=3&uploadId=${open.id}`, { headers: source }),
    to('ListParts', 'GET', `/open-${round}?uploadId=${open.id}`),
    to('CompleteMultipartUpload', 'POST', `/whole-${round}?uploadId=${whole.id}`, {
      body: Buffer.from(parts),
    }),
    to('AbortMultipartUpload', 'DELETE', `/aborted-${round}?uploadId=${aborted.id}`),
    to('MOVE', 'MOVE', `/moved-${round}`, { headers: { destination: `moved-to-${round}` } }),
    to('MOVE of a prefix', 'MOVE', `/p/1-${round}`, {
      headers: { destination: `q/1-${round}`, 'x-svc-prefix': 'true' },
    }),
    to('compose', 'PUT', `/composed-${round}?compose=`, {
      body: Buffer.from(`<ComposeRequest>${piece}${piece}</ComposeRequest>`),
    }),
    to('append small', 'PUT', `/grown-${round}?append=`, { body: SMALL }),
    to('append large', 'PUT', `/grown-${round}?append=`, { body: LARGE }),
    to('ListObjects', 'GET', ''),
    to('ListObjectsV2', 'GET', '?list-type=2'),
    to('ListObjectVersions', 'GET', '?versions'),
    to('ListMultipartUploads', 'GET', '?uploads'),
    to('HeadBucket', 'HEAD', ''),
    to('GetBucketLocation', 'GET', '?location'),
    to('GetBucketVersioning', 'GET', '?versioning'),
    to('PutBucketVersioning', 'PUT', '?versioning', {
      body: Buffer.from('<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>'),
    }),
    to('CreateBucket', 'PUT', `-new-${round}`),
    to('DeleteBucket', 'DELETE', `-gone-${round}`),
    to('MOVE of a bucket', 'MOVE', `-renamed-${round}`, {
      headers: { destination: `/${bucket}-to-${round}` },
    }),
    { name: 'ListBuckets', method: 'GET', path: '/' },
  ];
}
