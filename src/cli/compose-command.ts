// holdfast compose: makes an object of others that are there already, in their order (service 4.2). No byte is copied.
import { Refusal } from '../base/refusal.ts';
import { xmlElement, xmlText } from '../base/xml/write-xml.ts';
import { type ConnectOptions, connectS3, type TokenCliContext } from './connect.ts';
import { metadataHeaders, tokenHeader } from './extension-headers.ts';
import { formatAnswer } from './format.ts';
import { parseObjectAddress, parseVersionAddress } from './object-address.ts';

export interface ComposeOptions extends ConnectOptions {
  /** `name=value`, each. */
  meta?: string[];
  token?: string;
}

export async function compose(
  context: TokenCliContext,
  { target, components }: { target: string; components: readonly string[] },
  options: ComposeOptions,
): Promise<void> {
  const { bucket, key } = parseObjectAddress(target);
  const parts = components.map((text) => {
    const component = parseVersionAddress(text);
    if (component.bucket !== bucket) throw new Refusal(`${text} is in another bucket than ${target}`);
    return component;
  });
  const chosen = {
    ...metadataHeaders(options.meta ?? []),
    ...tokenHeader(options.token ?? context.newToken()),
  };
  const client = await connectS3(context, options);
  const body = xmlElement(
    'ComposeRequest',
    ...parts.map(({ key: name, versionId }) =>
      xmlElement(
        'Component',
        xmlText('Key', name),
        ...(versionId === undefined ? [] : [xmlText('VersionId', versionId)]),
      ),
    ),
  );
  const headers = await client.send({
    method: 'PUT',
    bucket,
    key,
    query: { compose: '' },
    headers: { 'content-type': 'text/xml', ...chosen },
    body,
  });
  const made = { etag: headers.etag, versionId: headers['x-amz-version-id'] };
  // Who may not read it is told no ETag.
  const told = made.etag === undefined ? '' : `, ETag ${made.etag}`;
  context.print(formatAnswer(options, made, () => `${target} is composed of ${parts.length}${told}`));
}
