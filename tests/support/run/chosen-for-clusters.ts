// Which files of tests/api and tests/clients run against a cluster whenever all tests do (tests/cluster/api.test.ts): those
// that say most about one. Each of them runs against the embedded form as well. restic has a test of its own (tests/cluster).
export const CHOSEN_FOR_CLUSTERS = [
  'api/put-object',
  'api/get-object',
  'api/copy-object',
  'api/versions',
  'api/complete-multipart-upload',
  'api/delete-objects',
  'api/move-bucket',
  'api/move-object',
  'api/move-result',
  'api/move-versions',
  'api/compose-object',
  'api/append-object',
  'api/force-delete-bucket',
  'api/extension-reports',
  'api/large-objects',
  'api/sos-objects',
  'clients/retention',
];
