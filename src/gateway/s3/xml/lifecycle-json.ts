// Lifecycle rules as the AWS CLI writes them (`--lifecycle-configuration`, and what get-bucket-lifecycle-configuration prints):
// made into the elements of the XML document, so that both forms have one reader.
import type { Steps } from '../../../base/async/steps.ts';
import { utf8 } from '../../../base/bytes/bytes.ts';
import { ownValue } from '../../../base/own-value.ts';
import { parseBoundedJson } from '../../../base/text/bounded-json.ts';
import { type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { type GivenRule, LIFECYCLE_ROOT, readRules } from './lifecycle-xml.ts';
import { readXmlBody } from './xml-body.ts';

/** Lists are named by a plural there, and their elements by this. */
const ELEMENT_OF: Readonly<Record<string, string>> = {
  Rules: 'Rule',
  Tags: 'Tag',
  Transitions: 'Transition',
  NoncurrentVersionTransitions: 'NoncurrentVersionTransition',
};
/** What is printed beside the rules. */
const BESIDE = 'TransitionDefaultMinimumObjectSize';
const DEPTH_MAX = 8;
/** Twenty of each of LIMITS.lifecycleRulesMax: they are parsed in one piece. */
const VALUES_MAX = 20_000;
const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();

/** The rules of a document in either form. Throws XmlError, MalformedXML. */
export function* readLifecycleText(text: string): Steps<GivenRule[]> {
  if (text.trimStart().startsWith('<')) return yield* readXmlBody(utf8(text), LIFECYCLE_ROOT, readRules);
  return yield* readRules(rootOf(text));
}

/** The root of the XML document that says the same. */
function rootOf(json: string): XmlElement {
  let value: unknown;
  try {
    value = parseBoundedJson(json, VALUES_MAX);
  } catch {
    throw new XmlError('no JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new XmlError('no object');
  const { [BESIDE]: _, ...rules } = value as Record<string, unknown>;
  return elementOf(LIFECYCLE_ROOT, rules, 0);
}

function elementOf(name: string, value: unknown, depth: number): XmlElement {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return { name, attributes: NO_ATTRIBUTES, text: String(value), children: [] };
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth === DEPTH_MAX)
    throw new XmlError(`a ${name} of another form`);
  const children = Object.entries(value).flatMap(([field, inner]) => {
    const listed = ownValue(ELEMENT_OF, field);
    if (listed === undefined) return [elementOf(field, inner, depth + 1)];
    if (!Array.isArray(inner)) throw new XmlError(`${field} that are no list`);
    return inner.map((each) => elementOf(listed, each, depth + 1));
  });
  return { name, attributes: NO_ATTRIBUTES, text: '', children };
}
