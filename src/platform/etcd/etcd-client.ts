// Bare calls to one server of etcd, over one connection. Nothing is tried twice, but for a call that was refused because the
// token of its user had lapsed. A connection that has failed is given up, so that the next call begins with a new one and
// does not wait for the old one to be tried again.
import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { LIMITS } from '../../types/limits.ts';
import { AUTHENTICATE, type Method } from './etcd-messages.ts';

export interface EtcdAccess {
  /** PEM, for https. */
  tls?: { ca: Buffer; cert?: Buffer; key?: Buffer };
  /** Of etcd's own users, where they are switched on. */
  user?: { name: string; password: string };
}

export interface EtcdClient {
  /** Rejects with what gRPC says. `deadlineMs`: wall clock. */
  call<Request extends object, Response extends object>(
    method: Method<Request, Response>,
    request: Request,
    deadlineMs: number,
  ): Promise<Response>;
  /**
   * Rejects when there is no token for its user. Its failures come as `error` events of the stream. Who has enough of it ends
   * it first and cancels it then: otherwise that counts as a failure of the connection.
   */
  open<Request extends object, Response extends object>(
    method: Method<Request, Response>,
    deadlineMs?: number,
  ): Promise<ClientDuplexStream<Request, Response>>;
  /** Calls that are under way reject, and later ones. */
  close(): void;
}

const OPTIONS: ChannelOptions = {
  // L6, on the level below.
  'grpc.enable_retries': 0,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // A channel that is made anew after an error must not take over the back-off of the one before.
  'grpc.use_local_subchannel_pool': 1,
  // A watch whose connection is dead ends; etcd does not allow to ask more often than every 5 s.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5000,
  'grpc.max_receive_message_length': 64 * 1024 * 1024,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.enable_channelz': 0,
};

/** Of a connection that may be of no use any more; the others are etcd's own answers. */
const DOUBTFUL: readonly status[] = [
  status.CANCELLED,
  status.UNKNOWN,
  status.DEADLINE_EXCEEDED,
  status.RESOURCE_EXHAUSTED,
  status.ABORTED,
  status.INTERNAL,
  status.UNAVAILABLE,
];
const TOKEN_LAPSED = 'etcdserver: invalid auth token';

/** `endpoint`: as `http://127.0.0.1:2379`. Connects when it is first asked. */
export function createEtcdClient(endpoint: string, { tls, user }: EtcdAccess): EtcdClient {
  const host = endpoint.replace(/^https?:\/\//, '');
  const channelCredentials = credentialsFor(endpoint, tls);
  let connection: Client | undefined;
  let token: Promise<Metadata> | undefined;
  let isClosed = false;

  function connect(): Client {
    if (isClosed) throw new Error('the client of etcd was closed');
    connection ??= new Client(host, channelCredentials, OPTIONS);
    return connection;
  }

  /** One that was made meanwhile stays. */
  function noteFailure(of: Client, { code, message }: ServiceError): void {
    if (message.includes(TOKEN_LAPSED)) token = undefined;
    if (!DOUBTFUL.includes(code) || connection !== of) return;
    connection = undefined;
    of.close();
  }

  function callOnce<Request extends object, Response extends object>(
    { path, encode, decode }: Method<Request, Response>,
    request: Request,
    options: { metadata: Metadata; deadlineMs: number },
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      const client = connect();
      const { metadata, deadlineMs: deadline } = options;
      client.makeUnaryRequest(path, encode, decode, request, metadata, { deadline }, (error, response) => {
        if (error !== null) {
          noteFailure(client, error);
          reject(error);
        } else resolve(response as Response);
      });
    });
  }

  /** What says to etcd who asks. */
  function identify(): Promise<Metadata> {
    if (user === undefined) return Promise.resolve(new Metadata());
    if (token !== undefined) return token;
    const asked = logIn(user);
    token = asked;
    asked.catch(() => {
      if (token === asked) token = undefined;
    });
    return asked;
  }

  async function logIn(who: { name: string; password: string }): Promise<Metadata> {
    const deadlineMs = Date.now() + LIMITS.coordinatorCallMaxMs;
    const answer = await callOnce(AUTHENTICATE, who, { metadata: new Metadata(), deadlineMs });
    const metadata = new Metadata();
    metadata.set('token', answer.token);
    return metadata;
  }

  return {
    async call(method, request, deadlineMs) {
      const metadata = await identify();
      try {
        return await callOnce(method, request, { metadata, deadlineMs });
      } catch (error) {
        if (user === undefined || !(error as Error).message.includes(TOKEN_LAPSED)) throw error;
        return await callOnce(method, request, { metadata: await identify(), deadlineMs });
      }
    },
    async open({ path, encode, decode }, deadlineMs) {
      const metadata = await identify();
      const client = connect();
      const deadline = deadlineMs === undefined ? {} : { deadline: deadlineMs };
      const stream = client.makeBidiStreamRequest(path, encode, decode, metadata, deadline);
      stream.on('error', (error: ServiceError) => {
        if (stream.writable) noteFailure(client, error);
      });
      return stream;
    },
    close() {
      isClosed = true;
      connection?.close();
    },
  };
}

function credentialsFor(endpoint: string, tls: EtcdAccess['tls']): ChannelCredentials {
  if (tls !== undefined) return credentials.createSsl(tls.ca, tls.key ?? null, tls.cert ?? null);
  return endpoint.startsWith('https:') ? credentials.createSsl() : credentials.createInsecure();
}
