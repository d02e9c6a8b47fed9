// The body of ComposeObject (service 2.7, extensions 2.3): the components, in order, each with what must hold of it.
import type { Steps } from '../../../base/async/steps.ts';
import { childrenOf, textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import { type ObjectKey, parseObjectKey, type VersionId } from '../../../types/names.ts';
import type { WriteConditions } from '../../../types/preconditions.ts';
import { isVersionId } from '../request/arguments.ts';
import { ELEMENT_CONDITION_CHARACTERS_MAX, readConditions } from '../request/write-conditions.ts';
import { readXmlBody, requiredText } from './xml-body.ts';

export interface Component {
  key: ObjectKey;
  /** Absent: the current version. */
  versionId?: VersionId;
  /** On the version that is taken. */
  conditions?: WriteConditions;
}

const ELEMENTS: ReadonlySet<string> = new Set(['Key', 'VersionId', 'VersionID', 'IfMatch', 'IfNoneMatch']);

/** 1 to 32 components. MalformedXML; InvalidRequest for another number of them; KeyTooLongError, NoSuchVersion. */
export function parseComposeBody(body: Uint8Array): Steps<Component[]> {
  return readXmlBody(body, 'ComposeRequest', (root) => {
    requireOnly(root, new Set(['Component']));
    const components = childrenOf(root, 'Component');
    if (components.length === 0 || components.length > LIMITS.composeOriginalsMax) {
      throw new AppError('InvalidRequest', {
        message: `A composition has 1 to ${LIMITS.composeOriginalsMax} components.`,
      });
    }
    return components.map(parseComponent);
  });
}

function parseComponent(element: XmlElement): Component {
  requireOnly(element, ELEMENTS);
  const text = requiredText(element, 'Key');
  const key = parseObjectKey(text);
  if (key === undefined) throw new XmlError('an empty Key');
  if (key === 'too-long') throw new AppError('KeyTooLongError');
  const versionId = parseVersion(element);
  const conditions = readConditions(
    { ifMatch: textOf(element, 'IfMatch'), ifNoneMatch: textOf(element, 'IfNoneMatch') },
    (condition, value) => new XmlError(`${condition} of ${value}`),
    ELEMENT_CONDITION_CHARACTERS_MAX,
  );
  if (versionId !== undefined && !isVersionId(versionId)) {
    throw new AppError('NoSuchVersion', { fields: { Key: key, VersionId: versionId } });
  }
  return { key, ...(versionId !== undefined && { versionId }), ...(conditions && { conditions }) };
}

function parseVersion(element: XmlElement): string | undefined {
  const [one, other] = [textOf(element, 'VersionId'), textOf(element, 'VersionID')];
  if (one !== undefined && other !== undefined) throw new XmlError('two version ids of one Component');
  return (one ?? other)?.trim();
}

/** What is passed over here would be other data than was asked for. */
function requireOnly(parent: XmlElement, names: ReadonlySet<string>): void {
  const other = parent.children.find(({ name }) => !names.has(name));
  if (other !== undefined) throw new XmlError(`${other.name} in ${parent.name}`);
}
