// The root element of an operation's XML body, and its elements as the operation needs them: every departure from the
// schema is MalformedXML. Size and digests were checked before (pipeline, step 8).
import { parseXml, textOf, type XmlElement, XmlError } from '../../lib/xml.ts';
import { AppError } from '../../model/errors.ts';
import { LIMITS } from '../../model/limits.ts';

/** Reads a body with `read`, which may throw XmlError itself. */
export function readXmlBody<T>(body: Uint8Array, rootName: string, read: (root: XmlElement) => T): T {
  try {
    const root = parseXml(body, { depthMax: LIMITS.xmlDepthMax });
    if (root.name !== rootName) throw new XmlError(`${root.name} instead of ${rootName}`);
    return read(root);
  } catch (error) {
    if (error instanceof XmlError) throw new AppError('MalformedXML', { cause: error });
    throw error;
  }
}

/** The text of a child that must be there. */
export function requiredText(parent: XmlElement, name: string): string {
  const text = textOf(parent, name);
  if (text === undefined) throw new XmlError(`no ${name} in ${parent.name}`);
  return text;
}
