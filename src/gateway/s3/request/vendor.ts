// The vendor names of the protocol, only here: the header prefixes that mean the same, and the XML namespace.
// Which spellings of the two prefixes are taken: extensions "What the contract leaves open, settled".
import { XML_DECLARATION } from '../../../base/xml/write-xml.ts';

/** The namespace of every S3 document (service 2.3). */
export const XML_NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

/** The one region there is (service 1). */
export const REGION = 'us-east';

/** A whole S3 document around parts that are XML already. */
export function s3Document(name: string, ...parts: readonly string[]): string {
  return `${XML_DECLARATION}<${name} xmlns="${XML_NAMESPACE}">${parts.join('')}</${name}>`;
}

const ALIASES: readonly (readonly [alias: string, prefix: string])[] = [
  ['x-std-', 'x-amz-'],
  ['x-wasabi-', 'x-svc-'],
];

/** A header whose name is the service's, in any spelling that it takes; `name` is in lower case. */
export function isVendorHeader(name: string): boolean {
  return name.startsWith('x-amz-') || name.startsWith('x-std-');
}

/** The name under which the service knows a header; `name` is in lower case. */
export function canonicalHeaderName(name: string): string {
  if (!name.startsWith('x-')) return name;
  for (const [alias, prefix] of ALIASES) {
    if (name.startsWith(alias)) return prefix + name.slice(alias.length);
  }
  return name;
}
