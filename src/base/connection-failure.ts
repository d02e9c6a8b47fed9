// Why a connection to a server failed, in words for the person who named the server: messages of the system or OpenSSL do
// not name what is wrong with the address.

const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** One line. `url`: what was asked. */
export function describeConnectionFailure(url: URL, error: NodeJS.ErrnoException): string {
  const { code = '', message } = error;
  // An error of several addresses, as of localhost, has no message.
  const reason = message.trim() || code;
  if (code === 'ECONNREFUSED') return `${reason}; is the server running?`;
  if (code === 'EPROTO' && message.includes('wrong version number'))
    return `it does not speak TLS there; is it http://${url.host}?`;
  if (code === 'ECONNRESET' && url.protocol === 'http:')
    return `${reason}; if it speaks TLS there, it is https://${url.host}`;
  if (UNTRUSTED.has(code))
    return 'nobody here vouches for its certificate; NODE_EXTRA_CA_CERTS may name a file with that of its authority';
  return reason;
}
