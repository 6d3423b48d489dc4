import * as v from 'valibot'
import { CrowdError } from '../core/errors.ts'
import { clientMessage, type ClientMessage } from './client-to-server.ts'
import { serverMessage, type ServerMessage } from './server-to-client.ts'

export type Parsed<Message> =
  | { readonly ok: true; readonly message: Message }
  | { readonly ok: false; readonly error: CrowdError }

/** Checks what came from a client. Never throws. */
export function parseClientMessage(input: unknown): Parsed<ClientMessage> {
  return read(clientMessage, input)
}

/** Checks what came from the server. Never throws. */
export function parseServerMessage(input: unknown): Parsed<ServerMessage> {
  return read(serverMessage, input)
}

function read<Schema extends typeof clientMessage | typeof serverMessage>(
  schema: Schema,
  input: unknown,
): Parsed<v.InferOutput<Schema>> {
  const result = v.safeParse(schema, input)
  if (result.success) return { ok: true, message: result.output }
  const issue = result.issues[0]
  const kind =
    typeof input === 'object' && input !== null && 'kind' in input
      ? String(input.kind).slice(0, 40)
      : '?'
  const path = v.getDotPath(issue) ?? 'message'
  return {
    ok: false,
    error: new CrowdError(
      'bad-message',
      `message of kind "${kind}": ${path}: ${issue.message}`.slice(0, 500),
    ),
  }
}
