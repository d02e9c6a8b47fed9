// Where commands look for the server and for keys, in their order: the names that count, and what --help says of it.

/** What a server writes into its data folder for commands (cmd/listening.ts). */
export const SERVER_FILE = 'server.json';
/** Of every command; src/config/names.ts knows it as well. */
export const ENDPOINT_VARIABLE = 'HOLDFAST_ENDPOINT';
export const DEFAULT_ENDPOINT = 'http://127.0.0.1:9000';
/** Of AWS's own tools, in their order. */
export const S3_ENDPOINT_VARIABLES = ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'];

/** The same of tools that speak IAM and STS. */
export const IDENTITY_ENDPOINT_VARIABLES = [
  'AWS_ENDPOINT_URL_IAM',
  'AWS_ENDPOINT_URL_STS',
  'AWS_ENDPOINT_URL',
];

/** For --help: in which order a command looks for the server and for keys. */
export const CONNECTION_HELP = `The server is at the first of these: --endpoint, HOLDFAST_ENDPOINT, what server.json of the data folder says,
${DEFAULT_ENDPOINT}. The data folder is --data-dir, HOLDFAST_DATA_DIR or ./data. The keys are HOLDFAST_ROOT_ACCESS_KEY and
HOLDFAST_ROOT_SECRET_KEY, else root-credentials.json of the data folder.`;

/** The same of commands that speak S3. */
export const S3_CONNECTION_HELP = `The server is at the first of these: --endpoint, HOLDFAST_ENDPOINT, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, what
server.json of the data folder says, ${DEFAULT_ENDPOINT}. The data folder is --data-dir, HOLDFAST_DATA_DIR or ./data. The keys
are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN where they are temporary, else HOLDFAST_ROOT_ACCESS_KEY
and HOLDFAST_ROOT_SECRET_KEY, else root-credentials.json of the data folder.`;

/** The same of commands that speak IAM and STS. */
export const IDENTITY_CONNECTION_HELP = `The server is at the first of these: --endpoint, HOLDFAST_ENDPOINT, AWS_ENDPOINT_URL_IAM, AWS_ENDPOINT_URL_STS,
AWS_ENDPOINT_URL, what server.json of the data folder says, ${DEFAULT_ENDPOINT}. The data folder is --data-dir,
HOLDFAST_DATA_DIR or ./data. The keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN where they are
temporary, else HOLDFAST_ROOT_ACCESS_KEY and HOLDFAST_ROOT_SECRET_KEY, else root-credentials.json of the data folder.`;

/** The same of `holdfast health`. */
export const HEALTH_HELP = `The process is at the first of these: --endpoint, HOLDFAST_ENDPOINT, the address of its settings (health.listen, else
listen), what server.json of the data folder says, ${DEFAULT_ENDPOINT}.`;
