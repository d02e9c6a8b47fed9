// What Node's parser refuses before there is a request: answered as S3's XML on the bare connection, which then closes.
import type { Socket } from 'node:net';
import { AppError } from '../../types/errors.ts';
import { errorXml } from '../s3/xml/error-xml.ts';
import type { RequestIds } from './request-ids.ts';

interface ParserError extends Error {
  code?: string;
}

/**
 * The error of the catalogue for one of Node's; undefined when the client cannot be answered: what fails is its connection, or TLS,
 * and nothing that it has sent.
 */
export function protocolError(error: ParserError): AppError | undefined {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new AppError('RequestHeaderSectionTooLarge');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('RequestTimeout');
    // The client has closed its half in the middle of a message, or a chunk of its body makes no sense.
    case 'HPE_INVALID_EOF_STATE':
    case 'HPE_INVALID_CHUNK_SIZE':
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
    case 'HPE_STRICT':
      return new AppError('IncompleteBody');
    default:
      if (error.code?.startsWith('HPE_') !== true) return undefined;
      return new AppError('BadRequest', { message: 'An error occurred when parsing the HTTP request.' });
  }
}

/** Sends the reason, if the client is still there, and closes. Returns the request id that it sent. */
export function refuseConnection(socket: Socket, error: AppError, ids: RequestIds): string {
  const { requestId, hostId } = ids.next();
  if (!socket.writable) {
    socket.destroy();
    return requestId;
  }
  const body = errorXml(error, { resource: '', requestId, hostId });
  socket.end(
    `HTTP/1.1 ${error.status} ${error.code}\r\nx-amz-request-id: ${requestId}\r\nx-amz-id-2: ${hostId}\r\nContent-Type: application/xml\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
  return requestId;
}
