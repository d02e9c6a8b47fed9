import { expect, test } from 'vitest';
import { parsePrincipal } from './principals.ts';

const ACCOUNT = '111111111111';

test.each([
  ['AWS', '*', 'everyone'],
  ['AWS', ACCOUNT, 'account'],
  ['AWS', `arn:aws:iam::${ACCOUNT}:root`, 'account'],
  ['AWS', `arn:aws:iam::${ACCOUNT}:user/ann`, 'user'],
  ['AWS', `arn:aws:iam::${ACCOUNT}:user/a/path/ann@example.com`, 'user'],
  ['AWS', `arn:aws:iam::${ACCOUNT}:role/path/r`, 'role'],
  ['AWS', `arn:aws:sts::${ACCOUNT}:assumed-role/r/session-1`, 'session'],
  ['AWS', `arn:aws:sts::${ACCOUNT}:federated-user/ann`, 'nobody'],
  ['CanonicalUser', '0f'.repeat(32), 'canonical-user'],
  ['Service', 'logging.s3.amazonaws.com', 'nobody'],
  ['Federated', 'cognito-identity.amazonaws.com', 'nobody'],
  ['Federated', `arn:aws:iam::${ACCOUNT}:saml-provider/x`, 'nobody'],
])('%s %s names one that is %s', (type, name, kind) => {
  expect(parsePrincipal(type, name)?.kind).toBe(kind);
});

test.each([
  ['AWS', ''],
  ['AWS', 'ann'],
  ['AWS', '11111111111'],
  ['AWS', '**'],
  ['AWS', `arn:aws:iam::${ACCOUNT}:*`],
  ['AWS', `arn:aws:iam::${ACCOUNT}:user/*`],
  ['AWS', `arn:aws:iam::${ACCOUNT}:user/a?n`],
  ['AWS', `arn:aws:iam::${ACCOUNT}:user/`],
  ['AWS', `arn:aws:iam::${ACCOUNT}:user`],
  ['AWS', `arn:aws:iam::${ACCOUNT}:group/g`],
  ['AWS', `arn:aws:iam::${ACCOUNT}:root/x`],
  ['AWS', `arn:aws:iam:us-east-1:${ACCOUNT}:user/ann`],
  ['AWS', 'arn:aws:iam::*:root'],
  ['AWS', `arn:aws-cn:iam::${ACCOUNT}:root`],
  ['AWS', `arn:aws:sts::${ACCOUNT}:assumed-role/r`],
  ['AWS', `arn:aws:sts::${ACCOUNT}:assumed-role/r/s/x`],
  ['AWS', `arn:aws:iam::${ACCOUNT}:user/änn`],
  ['CanonicalUser', '0F'.repeat(32)],
  ['CanonicalUser', '*'],
  ['Service', '*'],
  ['Service', 'example.com'],
  ['Federated', 'x y'],
  ['Other', '*'],
])('%s %s names nobody that there could be', (type, name) => {
  expect(parsePrincipal(type, name)).toBeUndefined();
});
