// Which files of tests/api and tests/clients run against a cluster whenever all tests do (tests/cluster/api.test.ts): those
// that say most about one: the extensions, data that several nodes hold, and retention. Each of them runs against the
// embedded form as well. All others have every message to a shard serialised (the project api-loopback), or run by hand;
// restic has a test of its own (tests/cluster).
export const CHOSEN_FOR_CLUSTERS = [
  'api/put-object',
  'api/versions',
  'api/move-bucket',
  'api/move-object',
  'api/move-result',
  'api/move-versions',
  'api/compose-object',
  'api/append-object',
  'api/force-delete-bucket',
  'api/extension-reports',
  'api/large-objects',
  'clients/retention',
];
