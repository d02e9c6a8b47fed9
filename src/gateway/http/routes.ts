// The one table of HTTP services. Order is precedence: a request is served by the first row that it fits, and the last one,
// S3, takes all that is left. A new service is a row above it:
//
//   the console     within '/console'; nothing else of it is decided
//
// routes.test.ts has such rows as examples.
import { iamService } from '../identity-api/iam-service.ts';
import { stsService } from '../identity-api/sts-service.ts';
import { MANAGEMENT_PREFIX } from '../management-api/management-api.ts';
import {
  managementDocs,
  managementDocument,
  managementService,
} from '../management-api/management-service.ts';
import { passwordResets } from '../management-api/password-resets.ts';
import { OPERATOR_PREFIX } from '../operator-api/operator-api.ts';
import { operatorService, unknownOperatorVersion } from '../operator-api/operator-service.ts';
import { serveS3 } from '../s3/pipeline.ts';
import { liveness, metrics, readiness, unknownProbe } from './probes.ts';
import { serviceRow } from './serve-route.ts';
import type { ServiceRoute } from './service-route.ts';

const HOSTS = { hosts: 'without-bucket' } as const;
/** Of the query protocol, which shares its path with S3: the service that a request is signed for tells them apart. */
const AT_ROOT = { ...HOSTS, path: { exact: '/' } } as const;
const FORM = 'application/x-www-form-urlencoded';

export const ROUTES: readonly ServiceRoute[] = [
  serviceRow('health-live', { ...HOSTS, path: { exact: '/health/live' } }, liveness),
  serviceRow('health-ready', { ...HOSTS, path: { exact: '/health/ready' } }, readiness),
  serviceRow('health', { ...HOSTS, path: { within: '/health' } }, unknownProbe),
  serviceRow('metrics', { ...HOSTS, path: { exact: '/metrics' } }, metrics),
  serviceRow('metrics-below', { ...HOSTS, path: { within: '/metrics' } }, unknownProbe),
  serviceRow('operator-base', { ...HOSTS, path: { exact: OPERATOR_PREFIX } }, unknownOperatorVersion),
  serviceRow('operator', { ...HOSTS, path: { within: OPERATOR_PREFIX } }, operatorService),
  serviceRow('operator-versions', { ...HOSTS, path: { within: '/holdfast-admin' } }, unknownOperatorVersion),
  serviceRow(
    'management-document',
    { ...HOSTS, path: { exact: `${MANAGEMENT_PREFIX}/openapi.json` } },
    managementDocument,
  ),
  serviceRow('management-docs', { ...HOSTS, path: { within: `${MANAGEMENT_PREFIX}/docs` } }, managementDocs),
  serviceRow(
    'password-resets',
    { ...HOSTS, path: { exact: `${MANAGEMENT_PREFIX}/password-resets` } },
    passwordResets,
  ),
  serviceRow('management', { ...HOSTS, path: { within: MANAGEMENT_PREFIX } }, managementService),
  serviceRow('iam', { ...AT_ROOT, method: 'POST', contentType: FORM, signedFor: ['iam'] }, iamService),
  serviceRow('iam-query', { ...AT_ROOT, method: 'GET', signedFor: ['iam'] }, iamService),
  serviceRow('sts', { ...AT_ROOT, method: 'POST', contentType: FORM, signedFor: ['sts'] }, stsService),
  serviceRow('sts-query', { ...AT_ROOT, method: 'GET', signedFor: ['sts'] }, stsService),
  {
    name: 's3',
    hosts: 'any',
    path: 'any',
    authentication: 'SigV4 or SigV2 for s3, or none: step 4 of its pipeline',
    serve: ({ s3 }, exchange, bucketLabel) => serveS3(s3, exchange, bucketLabel),
  },
];

/** Its rows are in use where the gateway has accounts to manage. */
export function isOfManagement({ path }: ServiceRoute): boolean {
  const text = typeof path === 'string' ? path : 'exact' in path ? path.exact : path.within;
  return text.startsWith(MANAGEMENT_PREFIX);
}
