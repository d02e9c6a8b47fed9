// Where the document of a policy comes from: a file, standard input, or a template for a bucket.
import { readFile, stat } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Refusal } from '../../base/refusal.ts';
import { parseBucketName } from '../../types/names.ts';
import { isTemplateName, policyOfTemplate, TEMPLATE_NAMES, type TemplateName } from './policy-templates.ts';

export interface PolicySource {
  /** `-`: standard input. */
  file?: string;
  template?: string;
  bucket?: string;
}

/** What the server takes at most, and more. */
const FILE_BYTES_MAX = 1 << 20;

/** The document as it stands in the file, or as the template makes it. Throws {@link Refusal}. */
export async function readPolicy({ file, template, bucket }: PolicySource): Promise<string> {
  if ((file === undefined) === (template === undefined))
    throw new Refusal('give one of --file and --template');
  if (file === undefined) {
    const made = parseTemplate(template, bucket);
    return policyOfTemplate(made.template, made.bucket);
  }
  if (bucket !== undefined) throw new Refusal('--bucket goes with --template');
  if (file === '-') return text(process.stdin);
  const found = await stat(file).catch((error: Error) => {
    throw new Refusal(`cannot read ${file}: ${error.message}`);
  });
  if (!found.isFile() || found.size > FILE_BYTES_MAX)
    throw new Refusal(`${file} is no policy: a policy is a file of ${FILE_BYTES_MAX >> 20} MiB at most`);
  return readFile(file, 'utf8');
}

/** Both must be there and well-formed: a wildcard in place of a bucket would give more than was meant. */
export function parseTemplate(
  template: string | undefined,
  bucket: string | undefined,
): { template: TemplateName; bucket: string } {
  if (template === undefined || !isTemplateName(template))
    throw new Refusal(`the template must be one of ${TEMPLATE_NAMES.join(', ')}, not "${template ?? ''}"`);
  if (bucket === undefined) throw new Refusal(`${template} is of one bucket: give --bucket`);
  if (parseBucketName(bucket) === undefined) throw new Refusal(`"${bucket}" is no name of a bucket`);
  return { template, bucket };
}
