// The certificates that a client sends as it shakes hands (TLS 1.3), looked at before OpenSSL gets them. It makes keys of all of them
// before it asks who has signed them, and strangers may send any: one of 700 bytes held the thread for 0.16 s, eight for a
// second. They come encrypted, by a key that the server has by then and tells who listens ("keylog"). What is here reads
// nothing else: whether the client may come in is for OpenSSL to say.
import { createDecipheriv, createHmac } from 'node:crypto';
import { hasPlainKey } from './plain-key.ts';

/** Of a record (RFC 8446 5.1). */
const HEAD_BYTES = 5;
const TAG_BYTES = 16;
const IV_BYTES = 12;
const ENCRYPTED = 23;
const ALERT = 21;
const HANDSHAKE = 22;
/** Kinds of messages (RFC 8446 4), each with a head of its kind and three bytes of its length. */
const CERTIFICATE = 11;
const CERTIFICATE_VERIFY = 15;
const FINISHED = 20;
const MESSAGE_HEAD_BYTES = 4;

const SECRET = /^CLIENT_HANDSHAKE_TRAFFIC_SECRET [0-9a-f]+ ([0-9a-f]+)/;
/** By cipher suite: as Node names it, with the hash that its keys are made with. */
const CIPHERS: Readonly<Record<string, { name: string; hash: string; keyBytes: number }>> = {
  TLS_AES_128_GCM_SHA256: { name: 'aes-128-gcm', hash: 'sha256', keyBytes: 16 },
  TLS_AES_256_GCM_SHA384: { name: 'aes-256-gcm', hash: 'sha384', keyBytes: 32 },
  TLS_CHACHA20_POLY1305_SHA256: { name: 'chacha20-poly1305', hash: 'sha256', keyBytes: 32 },
};

interface Keys {
  readonly cipher: string;
  readonly key: Buffer;
  readonly iv: Buffer;
}

/** Of one connection. */
export class SentCertificates {
  #keys: Keys | undefined;
  /** Encrypted records so far. */
  #count = 0;
  /** The beginning of a record. */
  #record = Buffer.alloc(0);
  /** What was in records, up to the end of a message. */
  #messages = Buffer.alloc(0);
  /** Messages that may come next. */
  #next: readonly number[] = [CERTIFICATE, FINISHED];

  /** A line of the server's log of keys, and the cipher suite by then. */
  learn(line: string, suite: string): void {
    const secret = SECRET.exec(line)?.[1];
    const cipher = CIPHERS[suite];
    if (secret === undefined || cipher === undefined) return;
    const expand = (label: string, sizeBytes: number) =>
      expandLabel(Buffer.from(secret, 'hex'), { label, hash: cipher.hash, sizeBytes });
    this.#keys = {
      cipher: cipher.name,
      key: expand('key', cipher.keyBytes),
      iv: expand('iv', IV_BYTES),
    };
  }

  /** To be asked of all that comes until hands are shaken, in its order. False: it is nothing that a member sends. */
  mayPass(bytes: Buffer): boolean {
    if (this.#next.length === 0) return true;
    let rest = Buffer.concat([this.#record, bytes]);
    while (rest.length >= HEAD_BYTES) {
      const endAt = HEAD_BYTES + rest.readUInt16BE(3);
      if (rest.length < endAt) break;
      if (rest[0] === ENCRYPTED && !this.#mayPassRecord(rest.subarray(0, endAt))) return false;
      rest = rest.subarray(endAt);
    }
    this.#record = rest;
    return true;
  }

  #mayPassRecord(record: Buffer): boolean {
    // Behind its last message the client goes on with other keys.
    if (this.#next.length === 0) return true;
    const plain = this.#decrypt(record);
    const kindAt = plain?.findLastIndex((byte) => byte !== 0) ?? -1;
    const kind = plain?.[kindAt];
    if (plain === undefined || kind !== HANDSHAKE) return kind === ALERT;
    this.#messages = Buffer.concat([this.#messages, plain.subarray(0, kindAt)]);
    return this.#mayPassMessages();
  }

  /** Undefined: the client has other keys than the server. */
  #decrypt(record: Buffer): Buffer | undefined {
    if (this.#keys === undefined || record.length < HEAD_BYTES + TAG_BYTES) return undefined;
    const { cipher, key, iv } = this.#keys;
    const nonce = Buffer.from(iv);
    nonce.writeUInt32BE((nonce.readUInt32BE(IV_BYTES - 4) ^ this.#count++) >>> 0, IV_BYTES - 4);
    const decipher = createDecipheriv(cipher as 'aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(record.subarray(0, HEAD_BYTES)).setAuthTag(record.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(record.subarray(HEAD_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  /** OpenSSL takes a message when it is whole. */
  #mayPassMessages(): boolean {
    while (this.#messages.length >= MESSAGE_HEAD_BYTES && this.#next.length > 0) {
      const kind = this.#messages[0] ?? 0;
      if (!this.#next.includes(kind)) return false;
      const endAt = MESSAGE_HEAD_BYTES + this.#messages.readUIntBE(1, 3);
      if (this.#messages.length < endAt) return true;
      const isGood = kind !== CERTIFICATE || arePlain(this.#messages.subarray(MESSAGE_HEAD_BYTES, endAt));
      if (!isGood) return false;
      this.#next =
        kind === CERTIFICATE ? [CERTIFICATE_VERIFY, FINISHED] : kind === FINISHED ? [] : [FINISHED];
      this.#messages = this.#messages.subarray(endAt);
    }
    return true;
  }
}

/** Of all certificates of the message (RFC 8446 4.4.2). What goes with one would be an answer to what no server asks for. */
function arePlain(message: Buffer): boolean {
  const contextBytes = message[0] ?? 0;
  if (contextBytes > 0 || message.length < 4) return false;
  const listBytes = message.readUIntBE(1, 3);
  if (4 + listBytes !== message.length) return false;
  let rest = message.subarray(4);
  while (rest.length > 0) {
    if (rest.length < 3) return false;
    const certificateBytes = rest.readUIntBE(0, 3);
    const endAt = 3 + certificateBytes;
    if (rest.length < endAt + 2 || rest.readUInt16BE(endAt) !== 0) return false;
    if (!hasPlainKey(rest.subarray(3, endAt))) return false;
    rest = rest.subarray(endAt + 2);
  }
  return true;
}

/** HKDF-Expand-Label (RFC 8446 7.1), of no more than one block. */
function expandLabel(
  secret: Buffer,
  { label, hash, sizeBytes }: { label: string; hash: string; sizeBytes: number },
): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, sizeBytes, name.length]), name, Buffer.from([0, 1])]);
  return createHmac(hash, secret).update(info).digest().subarray(0, sizeBytes);
}
