// Whether a certificate has a public key of a plain kind, found without making the key. OpenSSL makes a key of whatever a certificate
// says as it parses it, before anybody asks who has signed it: an elliptic curve that the certificate itself describes may be
// one on which a point takes 0.2 s to find.

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OBJECT_ID = 0x06;
const SEQUENCE = 0x30;
const VERSION = 0xa0;

/** Object ids, without their tags and lengths. */
const RSA = new Set(['2a864886f70d010101', '2a864886f70d01010a']);
const EC = '2a8648ce3d0201';
/** P-256, P-384, P-521. */
const NAMED_CURVES = new Set(['2a8648ce3d030107', '2b81040022', '2b81040023']);
const ED25519 = '2b6570';
/** The longer it is, the longer takes each check of a signature. */
const RSA_EXPONENT_BYTES_MAX = 4;

/**
 * Whether the key of a certificate (DER) is of RSA, of one of three curves that are named, or of Ed25519. False also where it is
 * written as DER is not: OpenSSL may read that otherwise.
 */
export function hasPlainKey(certificate: Buffer): boolean {
  const [body] = elementsOf(certificate, [SEQUENCE]);
  const [signed] = elementsOf(body, [SEQUENCE]);
  // Number, algorithm, issuer, validity, subject (RFC 5280 4.1).
  const fields = [INTEGER, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE];
  const hasVersion = signed?.[0] === VERSION;
  const [algorithm, bits] = elementsOf(
    elementsOf(signed, hasVersion ? [VERSION, ...fields] : fields).at(-1),
    [SEQUENCE, BIT_STRING],
  );
  const name = elementsOf(algorithm, [OBJECT_ID])[0]?.toString('hex') ?? '';
  if (name === EC) {
    const curve = elementsOf(algorithm, [OBJECT_ID, OBJECT_ID])[1];
    return curve !== undefined && NAMED_CURVES.has(curve.toString('hex'));
  }
  if (!RSA.has(name)) return name === ED25519;
  // Behind the number of bits that are not used.
  const [numbers] = elementsOf(bits?.subarray(1), [SEQUENCE]);
  const exponent = elementsOf(numbers, [INTEGER, INTEGER])[1];
  return exponent !== undefined && exponent.length <= RSA_EXPONENT_BYTES_MAX;
}

/** What is in the first elements; none unless they have these tags. */
function elementsOf(bytes: Buffer | undefined, tags: readonly number[]): Buffer[] {
  if (bytes === undefined) return [];
  const found: Buffer[] = [];
  let at = 0;
  for (const tag of tags) {
    const content = contentAt(bytes, at, tag);
    if (content === undefined) return [];
    found.push(content);
    at = content.byteOffset - bytes.byteOffset + content.length;
  }
  return found;
}

/** Lengths of one to three bytes: a certificate is shorter than 64 KiB. */
function contentAt(bytes: Buffer, at: number, tag: number): Buffer | undefined {
  const [found, first] = [bytes[at], bytes[at + 1]];
  if (found !== tag || first === undefined) return undefined;
  const lengthBytes = first < 0x80 ? 0 : first - 0x80;
  const from = at + 2 + lengthBytes;
  if ((first >= 0x80 && lengthBytes === 0) || lengthBytes > 2 || from > bytes.length) return undefined;
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes);
  return from + length > bytes.length ? undefined : bytes.subarray(from, from + length);
}
