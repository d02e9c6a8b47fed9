// Tags as requests bring them and answers show them: the x-amz-tagging header, the Tagging document, and who may read or
// set them beside another operation. What a valid set is, is model/tags.ts's.

import type { Steps } from '../../../base/async/steps.ts';
import { bytesToText, queryDecode } from '../../../base/text/uri.ts';
import { childOf, textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { VersionId } from '../../../types/names.ts';
import { findTagFault, type Tag, type TagFault } from '../../../types/tags.ts';
import type { OperationContext } from '../context.ts';
import { addressOf, type OpenCopySource } from '../objects/open-copy-source.ts';
import { type OperationRequest, objectArn } from '../operation.ts';
import { readXmlBody } from '../xml/xml-body.ts';
import { invalidArgument } from './arguments.ts';
import { s3Document } from './vendor.ts';

const HEADER = 'x-amz-tagging';

// ---- the header ----

/** `key=value&key2=value2`, percent-encoded; undefined where it names no tag. InvalidArgument, InvalidTag. */
export function parseTaggingHeader(headers: OperationRequest['headers']): Tag[] | undefined {
  const header = headers[HEADER];
  if (header === undefined) return undefined;
  const tags: Tag[] = [];
  for (const pair of header.split('&')) {
    if (pair !== '') tags.push(parsePair(pair) ?? refuseHeader(header));
  }
  if (tags.length === 0) return undefined;
  const fault = findTagFault(tags);
  if (fault?.kind === 'repeated-key') refuseHeader(header);
  if (fault !== undefined) throw invalidTag(fault);
  return tags;
}

function parsePair(pair: string): Tag | undefined {
  const equals = pair.indexOf('=');
  const key = decode(equals === -1 ? pair : pair.slice(0, equals));
  const value = decode(equals === -1 ? '' : pair.slice(equals + 1));
  return key && value !== undefined ? { key, value } : undefined;
}

function decode(encoded: string): string | undefined {
  const bytes = queryDecode(encoded);
  return bytes === undefined ? undefined : bytesToText(bytes);
}

function refuseHeader(header: string): never {
  const message = `The header '${HEADER}' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.`;
  throw invalidArgument({ name: HEADER, value: header, message });
}

// ---- the document ----

/** The body of PutObjectTagging: a set that may be empty. MissingRequestBodyError, MalformedXML, InvalidTag. */
export function* parseTaggingBody(body: Uint8Array): Steps<Tag[]> {
  if (body.length === 0) throw new AppError('MissingRequestBodyError');
  const tags = yield* readXmlBody(body, 'Tagging', (root) => {
    requireOnly(root, ['TagSet']);
    const set = childOf(root, 'TagSet');
    if (set === undefined) throw new XmlError('no TagSet');
    requireOnly(set, ['Tag']);
    return set.children.map(parseTag);
  });
  const fault = findTagFault(tags);
  if (fault !== undefined) throw invalidTag(fault);
  return tags;
}

function parseTag(element: XmlElement): Tag {
  requireOnly(element, ['Key', 'Value']);
  const key = textOf(element, 'Key');
  const value = textOf(element, 'Value');
  if (key === undefined || value === undefined) throw new XmlError('a Tag without Key or Value');
  return { key, value };
}

/** What is passed over here would be a tag that is lost. */
function requireOnly(parent: XmlElement, names: readonly string[]): void {
  const other = parent.children.find(({ name }) => !names.includes(name));
  if (other !== undefined) throw new XmlError(`${other.name} in ${parent.name}`);
}

/** The document of GetObjectTagging: tags sorted by the bytes of their keys. */
export function taggingDocument(tags: readonly Tag[]): string {
  const sorted = tags.toSorted((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
  const elements = sorted.map(({ key, value }) =>
    xmlElement('Tag', xmlText('Key', key), xmlText('Value', value)),
  );
  return s3Document('Tagging', xmlElement('TagSet', ...elements));
}

export function invalidTag(fault: TagFault): AppError {
  switch (fault.kind) {
    // AWS says BadRequest here; s3-behaviour 44 has one code for all.
    case 'too-many':
      return new AppError('InvalidTag', { message: `Object tags cannot be greater than ${LIMITS.tagsMax}` });
    case 'key':
      return faultOf(fault.tag, 'The TagKey you have provided is invalid');
    case 'reserved-key':
      return faultOf(fault.tag, 'Your TagKey cannot be prefixed with aws:');
    case 'repeated-key':
      return faultOf(fault.tag, 'Cannot provide multiple Tags with the same key');
    case 'value':
      return new AppError('InvalidTag', {
        message: 'The TagValue you have provided is invalid',
        fields: { TagKey: fault.tag.key, TagValue: fault.tag.value },
      });
  }
}

function faultOf({ key }: Tag, message: string): AppError {
  return new AppError('InvalidTag', { message, fields: { TagKey: key } });
}

// ---- access ----

/** What a request that makes an object with tags of its own needs besides. */
export function taggingAccess(resource: string, tags: readonly Tag[] | undefined): readonly AccessPair[] {
  if (tags === undefined || tags.length === 0) return [];
  return [['s3:PutObjectTagging', resource, undefined, { isOfNewObject: true, givenTags: tags }]];
}

/** AccessDenied unless the caller may take the source's tags along, where it has any (AWS CopyObject), and goes on to. */
export async function requireTaggingAccess(
  context: OperationContext,
  target: { resource: string },
  source: OpenCopySource,
): Promise<void> {
  const { bucketRow, key, versionId, found } = source;
  const { owner, acl: grants, tags = [] } = found.version;
  // A version with other tags may take its place while the copy is made: it would not be the one that was judged.
  context.seen.note(addressOf(source), { acl: { owner, grants }, tags });
  if (tags.length === 0) return;
  await source.alsoNeed([readTagsAccess(objectArn({ bucket: bucketRow.record.name, key }), versionId)]);
  await context.alsoNeed(taggingAccess(target.resource, tags));
}

/** The count of tags is for those who may read them (AWS GetObject). */
export function mayReadTags(
  context: OperationContext,
  { resource, versionId }: { resource: string; versionId?: VersionId | undefined },
): Promise<boolean> {
  return context.mayAlso([readTagsAccess(resource, versionId)], context.bucket());
}

export function readTagsAccess(resource: string, versionId: VersionId | undefined): AccessPair {
  const action = versionId === undefined ? 's3:GetObjectTagging' : 's3:GetObjectVersionTagging';
  return [action, resource, undefined, { versionId }];
}
