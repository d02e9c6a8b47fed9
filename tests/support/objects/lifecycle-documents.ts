// Documents of lifecycle rules, and the requests that put them, for tests.
import type { RawRequest } from '../servers/raw-s3.ts';

export const FILTER = '<Filter></Filter>';
export const ENABLED = '<Status>Enabled</Status>';
export const EXPIRES = '<Expiration><Days>1</Days></Expiration>';

/** Of the parts of each rule. */
export const lifecycleXml = (...rules: readonly string[]): string =>
  `<LifecycleConfiguration>${rules.map((rule) => `<Rule>${rule}</Rule>`).join('')}</LifecycleConfiguration>`;

export const putRules = (bucket: string, ...rules: readonly string[]): RawRequest => ({
  method: 'PUT',
  path: `/${bucket}?lifecycle`,
  body: Buffer.from(lifecycleXml(...rules)),
});
