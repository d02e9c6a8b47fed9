// ListObjectsV2: pages by opaque token, owners on request.
import { escapeXml } from '../../../base/xml/write-xml.ts';
import { LIMITS } from '../../../types/limits.ts';
import { defineOperation, type QueryParameters } from '../operation.ts';
import { invalidArgument } from '../request/arguments.ts';
import { s3Document } from '../request/vendor.ts';
import { commonPrefixesXml, contentsXml, makeToken, ownersXml, readToken } from '../xml/list-xml.ts';
import { echoXml, parseList, queryPage } from './list-objects-page.ts';

export const listObjectsV2 = defineOperation({
  name: 'ListObjectsV2',
  match: { method: 'GET', on: 'bucket', query: ['list-type=2'] },
  logName: 'REST.GET.BUCKET',
  body: 'none',
  errors: ['InvalidArgument'],
  parse: (request) => {
    const token = request.query.get('continuation-token');
    if (token === '') refuseBesideEmptyToken(request.query);
    return {
      ...parseList(request),
      token,
      // An empty token is a token that says nothing (s3-behaviour 37).
      after: token ? readToken(token) : undefined,
      startAfter: request.query.get('start-after'),
      wantsOwner: request.query.get('fetch-owner')?.toLowerCase() === 'true',
    };
  },
  access: ({ resource }) => [['s3:ListBucket', resource]],
  memoryBytes: ({ maxKeys }) => maxKeys * LIMITS.listedKeyMemoryBytes,
  async run(context, input) {
    const { writeName, token, startAfter } = input;
    const page = await queryPage(context, input, input.after ?? startAfter);
    const owners = input.wantsOwner ? await ownersXml(context, page.objects) : undefined;
    const tokenXml = token === undefined ? '' : `<ContinuationToken>${escapeXml(token)}</ContinuationToken>`;
    const nextXml =
      page.nextAfter === undefined
        ? ''
        : `<NextContinuationToken>${makeToken(page.nextAfter)}</NextContinuationToken>`;
    const startXml = startAfter === undefined ? '' : `<StartAfter>${writeName(startAfter)}</StartAfter>`;
    const text = s3Document(
      'ListBucketResult',
      `<Name>${input.bucketName}</Name><Prefix>${writeName(input.prefix)}</Prefix>${tokenXml}${nextXml}${startXml}` +
        `<KeyCount>${page.objects.length + page.commonPrefixes.length}</KeyCount><MaxKeys>${input.maxKeys}</MaxKeys>` +
        `${echoXml(input)}<IsTruncated>${page.isTruncated}</IsTruncated>` +
        (await contentsXml(context, page.objects, { writeName, ...(owners && { owners }) })) +
        (await commonPrefixesXml(context, page.commonPrefixes, writeName)),
    );
    return { status: 200, body: { kind: 'xml', text } };
  },
});

/** An empty token says that the listing goes on from nowhere: another place to begin at contradicts it (AWS refuses it). */
function refuseBesideEmptyToken(query: QueryParameters): void {
  const other = ['start-after', 'marker', 'key-marker'].find((name) => query.get(name));
  if (other === undefined) return;
  const message = 'The continuation token provided is incorrect';
  throw invalidArgument({ name: 'continuation-token', value: '', message });
}
