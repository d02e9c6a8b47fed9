// How the client sees this server, and who it is: straight from the connection, or from the X-Forwarded headers where
// the connection comes from a trusted proxy. Anybody else's X-Forwarded headers mean nothing.
import { BlockList, isIP, isIPv4, isIPv6, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { RequestHeaders } from './request-headers.ts';

export interface ClientView {
  readonly remoteAddress: string;
  /** As the client addressed it: name and port, '' when it did not say. */
  readonly host: string;
  readonly scheme: 'http' | 'https';
  readonly tls: { readonly version: string; readonly cipher: string } | undefined;
  /** The connection is a proxy's: one that is believed, or that has left its mark. */
  readonly isProxied: boolean;
  /** Nobody else can read the request: HTTPS, or a client on this machine. */
  readonly isPrivate: boolean;
}

export interface ClientViewer {
  view(socket: Socket, headers: RequestHeaders): ClientView;
  /**
   * What Host may have been when the client signed, besides what was sent; `sentHost` is undefined where it was not that,
   * in no spelling. `label` is the bucket in the host.
   */
  otherHosts(client: ClientView, sentHost: string | undefined, label: string | undefined): readonly string[];
}

interface ConnectionFacts {
  remoteAddress: string;
  isTrusted: boolean;
  tls: ClientView['tls'];
}

const DEFAULT_PORT = { http: ':80', https: ':443' } as const;

/** Nothing that they say is believed; but what comes next on such a connection may be somebody else's. */
const PROXY_MARKS = ['via', 'forwarded', 'x-forwarded-for'];

/** `trustedProxies`: addresses and CIDR ranges. `publicNames`: HOST, HOST:PORT or URLs. */
export function createClientViewer(settings: {
  trustedProxies: readonly string[];
  publicNames: readonly string[];
}): ClientViewer {
  const trusted = rangesOf(settings.trustedProxies);
  const publicHosts = settings.publicNames.map((name) =>
    name.replace(/^https?:\/\//i, '').replace(/\/.*$/, ''),
  );
  const connections = new WeakMap<Socket, ConnectionFacts>();
  const isTrusted = (address: string) => trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');

  function factsOf(socket: Socket): ConnectionFacts {
    let facts = connections.get(socket);
    if (facts === undefined) {
      const remoteAddress = plainAddress(withoutZone(socket.remoteAddress ?? ''));
      facts = { remoteAddress, isTrusted: isTrusted(remoteAddress), tls: tlsOf(socket) };
      connections.set(socket, facts);
    }
    return facts;
  }

  return {
    view(socket, { values }) {
      const facts = factsOf(socket);
      const ownScheme = facts.tls === undefined ? 'http' : 'https';
      const direct: ClientView = {
        remoteAddress: facts.remoteAddress,
        host: values.host ?? '',
        scheme: ownScheme,
        tls: facts.tls,
        isProxied: facts.isTrusted || PROXY_MARKS.some((name) => values[name] !== undefined),
        isPrivate: ownScheme === 'https' || isLoopback(facts.remoteAddress),
      };
      if (!facts.isTrusted) return direct;
      const scheme = lastOf(values['x-forwarded-proto'])?.toLowerCase();
      const forwardedScheme = scheme === 'https' || scheme === 'http' ? scheme : undefined;
      const sender = forwardedFor(values['x-forwarded-for'], isTrusted);
      // That a proxy is on this machine does not say that its client is.
      const isLocal =
        sender === undefined ? forwardedScheme === undefined && direct.isPrivate : isLoopback(sender);
      return {
        ...direct,
        remoteAddress: sender ?? facts.remoteAddress,
        host: lastOf(values['x-forwarded-host']) ?? direct.host,
        scheme: forwardedScheme ?? ownScheme,
        isPrivate: (forwardedScheme ?? ownScheme) === 'https' || isLocal,
      };
    },
    otherHosts(client, sentHost, label) {
      const named = label === undefined ? publicHosts : publicHosts.map((host) => `${label}.${host}`);
      const hosts = new Set<string>();
      for (const host of [sentHost ?? client.host, client.host, ...named]) {
        hosts.add(host);
        // Some clients sign the default port and do not send it, or the other way round.
        const port = DEFAULT_PORT[client.scheme];
        if (host.endsWith(port)) hosts.add(host.slice(0, -port.length));
        else if (!/:\d+$/.test(host)) hosts.add(host + port);
      }
      if (sentHost !== undefined) hosts.delete(sentHost);
      return [...hosts];
    },
  };
}

function rangesOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** IPv4 in its own form where a socket of both families gave it as IPv6. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}

/** A zone says by which of this machine's links the client came: no policy names it. */
function withoutZone(address: string): string {
  const zone = address.indexOf('%');
  return zone === -1 ? address : address.slice(0, zone);
}

function isLoopback(address: string): boolean {
  return address === '::1' || (isIPv4(address) && address.startsWith('127.'));
}

function tlsOf(socket: Socket): ClientView['tls'] {
  if (!('getCipher' in socket)) return undefined;
  const { getProtocol, getCipher } = socket as TLSSocket;
  return {
    version: getProtocol.call(socket) ?? 'unknown',
    cipher: getCipher.call(socket)?.standardName ?? 'unknown',
  };
}

/** The entry that the nearest proxy added. */
function lastOf(list: string | undefined): string | undefined {
  return list?.split(',').at(-1)?.trim() || undefined;
}

/** Entries of X-Forwarded-For that are looked at, from the end: more proxies than stand in any row. */
const FORWARDED_HOPS_MAX = 32;
const WITH_PORT = /^(?:\[([^[\]]+)\]|([\d.]+))(?::\d{1,5})?$/;

/**
 * The nearest address that is not a trusted proxy's; each proxy has added the one it saw at the end. What stands before an
 * entry that is no address is not believed: nobody known has seen it.
 */
function forwardedFor(list: string | undefined, isTrusted: (address: string) => boolean): string | undefined {
  let nearest: string | undefined;
  for (const entry of (list ?? '').split(',').slice(-FORWARDED_HOPS_MAX).reverse()) {
    const text = entry.trim();
    if (text === '') continue;
    const address = addressIn(text);
    if (address === undefined) break;
    nearest = address;
    if (!isTrusted(address)) break;
  }
  return nearest;
}

/** The address in an entry that may have a port; undefined if malformed. */
function addressIn(entry: string): string | undefined {
  const match = WITH_PORT.exec(entry);
  const address = plainAddress(match?.[1] ?? match?.[2] ?? entry);
  // A zone means something on the proxy's machine only.
  return isIP(address) === 0 || address.includes('%') ? undefined : address;
}
