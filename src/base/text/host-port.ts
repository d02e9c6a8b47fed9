// HOST:PORT as text, where an IPv6 address stands in brackets.

export function hostPortText({ host, port }: { host: string; port: number }): string {
  return `${bracketed(host)}:${port}`;
}

/** As it stands in a URL. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** Without the brackets. */
export function hostOf(address: string): string {
  return address.slice(0, address.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1');
}

export function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1));
}
