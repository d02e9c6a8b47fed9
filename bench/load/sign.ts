// SigV4 for the load generator, with all that repeats kept: the generator shares its cores with what it measures.
// Only what its own requests need: paths and queries that are already encoded and sorted, single-valued headers.
import { createHash, createHmac } from 'node:crypto';
import type { Target } from './spec.ts';

export interface Signer {
  sign(request: {
    method: string;
    path: string;
    query: string;
    headers: Record<string, string>;
    payload: string;
  }): Record<string, string>;
}

export function createSigner(target: Target): Signer {
  const host = new URL(target.endpoint).host;
  let keyDay = '';
  let key: Buffer = Buffer.alloc(0);
  const keyFor = (day: string): Buffer => {
    if (day !== keyDay) {
      const steps = [day, target.region, 's3', 'aws4_request'];
      key = steps.reduce<Buffer>(
        (secret, step) => createHmac('sha256', secret).update(step).digest(),
        Buffer.from(`AWS4${target.secretKey}`),
      );
      keyDay = day;
    }
    return key;
  };
  return {
    sign({ method, path, query, headers, payload }) {
      const stamp = new Date().toISOString().replace(/[-:]|\.\d{3}/g, '');
      const day = stamp.slice(0, 8);
      const signed: Record<string, string> = {
        ...headers,
        host,
        'x-amz-content-sha256': payload,
        'x-amz-date': stamp,
      };
      const names = Object.keys(signed).sort();
      let canonical = `${method}\n${path}\n${query}\n`;
      for (const name of names) canonical += `${name}:${signed[name]}\n`;
      const nameList = names.join(';');
      canonical += `\n${nameList}\n${payload}`;
      const scope = `${day}/${target.region}/s3/aws4_request`;
      const digest = createHash('sha256').update(canonical).digest('hex');
      const signature = createHmac('sha256', keyFor(day))
        .update(`AWS4-HMAC-SHA256\n${stamp}\n${scope}\n${digest}`)
        .digest('hex');
      signed.authorization = `AWS4-HMAC-SHA256 Credential=${target.accessKey}/${scope},SignedHeaders=${nameList},Signature=${signature}`;
      return signed;
    },
  };
}
