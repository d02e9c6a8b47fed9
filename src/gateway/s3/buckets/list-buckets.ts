// ListBuckets: the caller's own buckets by name, in pages where the caller asks for them (s3-behaviour 37).
import { isoSeconds } from '../../../base/text/http-dates.ts';
import { escapeXml, xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import { SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import type { NameRecord } from '../../../types/records/rows.ts';
import type { OperationContext } from '../context.ts';
import { defineOperation, type QueryParameters } from '../operation.ts';
import { invalidArgument } from '../request/arguments.ts';
import { REGION, s3Document } from '../request/vendor.ts';
import { identityXml, makeToken, readToken } from '../xml/list-xml.ts';

const PAGE_MAX = 10_000;
const PARAMETERS = ['bucket-region', 'continuation-token', 'max-buckets', 'prefix'];
/** Rows asked of the shard at a time. */
const SCAN_PAGE = 1000;
/** Memory of a bucket while the list is made, about. */
const LISTED_BUCKET_BYTES = 1024;

export const listBuckets = defineOperation({
  name: 'ListBuckets',
  match: { method: 'GET', on: 'service' },
  logName: 'REST.GET.SERVICE',
  body: 'none',
  needsBucket: false,
  errors: ['InvalidArgument'],
  differences: 'bucket-region limits nothing: there is one region.',
  parse: ({ query }) => {
    const token = query.get('continuation-token');
    return {
      max: parseMax(query),
      prefix: query.get('prefix'),
      // An empty token is a token that says nothing (s3-behaviour 37).
      after: token ? readToken(token) : undefined,
      // AWS returns it for requests with any parameter.
      region: PARAMETERS.some((name) => query.has(name)) ? REGION : undefined,
    };
  },
  access: () => [['s3:ListAllMyBuckets', 'arn:aws:s3:::*']],
  memoryBytes: ({ max }) => Math.min(max, SCAN_PAGE) * LISTED_BUCKET_BYTES,
  async run(context, { max, prefix, after, region }) {
    const { accountId } = context.account();
    const { names, isTruncated } = await readNames(context, { max, prefix, after });
    await context.turn();
    const buckets = names.map(({ name, record }) =>
      xmlElement(
        'Bucket',
        xmlText('Name', name),
        xmlText('CreationDate', isoSeconds(record.createdAtMs)),
        xmlText('BucketRegion', region),
      ),
    );
    const last = names.at(-1);
    const text = s3Document(
      'ListAllMyBucketsResult',
      xmlElement('Owner', await identityXml(context, accountId)),
      xmlElement('Buckets', ...buckets),
      isTruncated && last !== undefined ? xmlText('ContinuationToken', makeToken(last.name)) : '',
      prefix === undefined ? '' : `<Prefix>${escapeXml(prefix)}</Prefix>`,
    );
    return { status: 200, body: { kind: 'xml', text } };
  },
});

function parseMax(query: QueryParameters): number {
  const name = 'max-buckets';
  const text = query.get(name);
  if (text === undefined) return PAGE_MAX;
  const max = Number(text);
  if (/^\d{1,9}$/.test(text) && max >= 1 && max <= PAGE_MAX) return max;
  const message = `Argument ${name} must be an integer between 1 and ${PAGE_MAX}`;
  throw invalidArgument({ name, value: text, message });
}

type Names = { name: string; record: NameRecord }[];

async function readNames(
  context: OperationContext,
  page: { max: number; prefix: string | undefined; after: string | undefined },
): Promise<{ names: Names; isTruncated: boolean }> {
  const names: Names = [];
  for (let { after } = page; ; after = names.at(-1)?.name) {
    const { value } = await context.metadata.query({ shard: SYSTEM_SHARD }, 'list-names', {
      owner: context.account().accountId,
      max: Math.min(SCAN_PAGE, page.max - names.length),
      ...(page.prefix !== undefined && { prefix: page.prefix }),
      ...(after !== undefined && { after }),
    });
    names.push(...value.names);
    if (!value.isTruncated || names.length >= page.max) return { names, isTruncated: value.isTruncated };
  }
}
