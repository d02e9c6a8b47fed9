// ListObjects, version 1: pages by marker, owners always shown.

import { LIMITS } from '../../../types/limits.ts';
import { defineOperation } from '../operation.ts';
import { invalidArgument } from '../request/arguments.ts';
import { s3Document } from '../request/vendor.ts';
import { commonPrefixesXml, contentsXml, ownersXml } from '../xml/list-xml.ts';
import { echoXml, parseList, queryPage } from './list-objects-page.ts';

export const listObjects = defineOperation({
  name: 'ListObjects',
  match: { method: 'GET', on: 'bucket' },
  logName: 'REST.GET.BUCKET',
  body: 'none',
  errors: ['InvalidArgument'],
  parse: (request) => {
    const listType = request.query.get('list-type');
    // 2 is another operation, and there are no others.
    if (listType !== undefined) {
      const message = 'Invalid List Type specified in Request';
      throw invalidArgument({ name: 'list-type', value: listType, message });
    }
    return { ...parseList(request), marker: request.query.get('marker') ?? '' };
  },
  access: ({ resource }) => [['s3:ListBucket', resource]],
  memoryBytes: ({ maxKeys }) => maxKeys * LIMITS.listedKeyMemoryBytes,
  async run(context, input) {
    const { writeName, marker } = input;
    const page = await queryPage(context, input, marker);
    const owners = await ownersXml(context, page.objects);
    // AWS gives NextMarker only with a delimiter; without one the last key is the marker.
    const hasNextMarker = input.delimiter !== undefined && page.nextAfter !== undefined;
    const text = s3Document(
      'ListBucketResult',
      `<Name>${input.bucketName}</Name><Prefix>${writeName(input.prefix)}</Prefix><Marker>${writeName(marker)}</Marker>` +
        (hasNextMarker ? `<NextMarker>${writeName(page.nextAfter ?? '')}</NextMarker>` : '') +
        `<MaxKeys>${input.maxKeys}</MaxKeys>${echoXml(input)}<IsTruncated>${page.isTruncated}</IsTruncated>` +
        (await contentsXml(context, page.objects, { writeName, owners })) +
        (await commonPrefixesXml(context, page.commonPrefixes, writeName)),
    );
    return { status: 200, body: { kind: 'xml', text } };
  },
});
