// Tags of objects as the API tests set and see them. Raw requests, no SDK.
import { must } from '../../../src/base/assert.ts';
import { childOf, childrenOf, textOf } from '../../../src/base/xml/parse-xml.ts';
import { escapeXml } from '../../../src/base/xml/write-xml.ts';
import { pathOf, type RawAnswer } from './raw-s3.ts';
import { type Api, expectStatus, xmlOf } from './s3-api.ts';

export type Tags = [key: string, value: string][];

export function taggingXml(tags: Tags): Buffer {
  const elements = tags.map(
    ([key, value]) => `<Tag><Key>${escapeXml(key)}</Key><Value>${escapeXml(value)}</Value></Tag>`,
  );
  return Buffer.from(`<Tagging><TagSet>${elements.join('')}</TagSet></Tagging>`);
}

export interface TaggedObject {
  bucket: string;
  key: string;
  versionId?: string;
}

export function taggingPath({ bucket, key, versionId }: TaggedObject): string {
  return `${pathOf(bucket, key)}?tagging${versionId === undefined ? '' : `&versionId=${versionId}`}`;
}

export function sendTags(api: Api, object: TaggedObject, tags: Tags): Promise<RawAnswer> {
  return api.send({ method: 'PUT', path: taggingPath(object), body: taggingXml(tags) });
}

/** What GetObjectTagging shows. */
export async function tagsOf(api: Api, object: TaggedObject): Promise<Tags> {
  const answer = await api.send({ method: 'GET', path: taggingPath(object) });
  expectStatus(answer, 200);
  const set = must(childOf(xmlOf(answer), 'TagSet'), 'a set');
  return childrenOf(set, 'Tag').map((tag) => [textOf(tag, 'Key') ?? '', textOf(tag, 'Value') ?? '']);
}

export const manyTags = (count: number): Tags =>
  Array.from({ length: count }, (_, index) => [`key ${index}`, `value ${index}`]);
