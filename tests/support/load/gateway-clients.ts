// Requests to one of several gateways, on connections that are kept. What says nothing of what came of a request counts
// as no answer: an error of the gateway's, a connection that breaks, a client that has waited long enough.
import { Agent } from 'node:http';
import { type Access, type RawAnswer, type RawRequest, send } from '../servers/raw-s3.ts';

/** A gateway says 503 after 10 s (protocol R48); the machine may be busy. */
const PATIENCE_MS = 15_000;
/** Of a prefix that is renamed: its client hears from it as long as it goes on. */
const LONG_PATIENCE_MS = 40_000;

export type Wanted = Omit<RawRequest, 'agent'>;

export class GatewayClients {
  /** Requests without an answer, by what came instead: a status, or how the connection ended. */
  readonly unanswered = new Map<string, number>();
  readonly #gateways: readonly Access[];
  readonly #agents: Agent[];

  constructor(gateways: readonly Access[]) {
    this.#gateways = gateways;
    this.#agents = gateways.map(() => new Agent({ keepAlive: true }));
  }

  get count(): number {
    return this.#gateways.length;
  }

  get unansweredCount(): number {
    return [...this.unanswered.values()].reduce((sum, count) => sum + count, 0);
  }

  async send(gateway: number, wanted: Wanted): Promise<RawAnswer | undefined> {
    const [access, agent] = [this.#gateways[gateway], this.#agents[gateway]];
    if (access === undefined || agent === undefined) throw new Error(`there is no gateway ${gateway}`);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), patienceFor(wanted));
    });
    try {
      const answer = await Promise.race([send(access, { ...wanted, agent }), late]);
      const isUnavailable = answer !== undefined && isUnavailableUnder200(wanted, answer);
      if (answer !== undefined && answer.status < 500 && !isUnavailable) return answer;
      this.#count(isUnavailable ? '503 under 200' : String(answer?.status ?? 'late'));
    } catch (error) {
      this.#count((error as NodeJS.ErrnoException).code ?? 'cut');
    } finally {
      clearTimeout(timer);
    }
    return undefined;
  }

  /** Breaks what is under way to it, as a client does that goes elsewhere. */
  leave(gateway: number): void {
    this.#agents[gateway]?.destroy();
    this.#agents[gateway] = new Agent({ keepAlive: true });
  }

  close(): void {
    for (const agent of this.#agents) agent.destroy();
  }

  #count(kind: string): void {
    this.unanswered.set(kind, (this.unanswered.get(kind) ?? 0) + 1);
  }
}

function patienceFor({ headers = {} }: Wanted): number {
  return Object.keys(headers).some((name) => /^x-svc-prefix$/i.test(name)) ? LONG_PATIENCE_MS : PATIENCE_MS;
}

/** A copy that takes long has its head sent before its outcome is known: what ends it then is in the body. */
function isUnavailableUnder200({ method }: Wanted, { status, body }: RawAnswer): boolean {
  return method === 'PUT' && status === 200 && body.includes('<Code>ServiceUnavailable</Code>');
}
