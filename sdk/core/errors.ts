import { WIRE_MESSAGE_MAX } from './limits.ts'

/**
 * Every failure a person or a peer can meet, with what to do about it. The code is the same in pages,
 * logs, the API and on the wire; README.md lists them from this table.
 */
export const ERROR_CODES = {
  'bad-request': 'Correct the request and send it again.',
  'bad-message': 'The other side broke the protocol. Reload the page; if it stays, report it.',
  'bad-frame': 'A peer sent a malformed frame and was cut off. Ask again.',
  'protocol-mismatch':
    'This device and the host speak different protocol versions. Reload the page, or update crowd-worker.',
  'wrong-secret': 'The invite link is not valid for this pool. Ask its host for a new one.',
  replaced: 'This device is open in another tab. Close one of the two.',
  'pool-full': 'The pool holds as many devices as its host allows. Try again later.',
  'too-many-requests': 'Wait a moment and try again.',
  'ring-incomplete': 'Some layers have no device. Open the join link on one more device.',
  'prompt-too-long': 'Shorten the conversation or start a new one.',
  'stage-lost': 'A device left while it was computing, and nobody took over in time. Ask again.',
  'stage-failed':
    'A device could not compute its layers. Ask again; a device that keeps failing is set aside.',
  timeout: 'Something took longer than its limit. Try again.',
  aborted: 'The work was stopped on request.',
  'link-closed': 'The connection to another device closed.',
  'host-unreachable': 'Check the link, that the host runs, and that this machine can reach it.',
  'host-untrusted':
    "Set NODE_EXTRA_CA_CERTS to a copy of the host's certificate (host-cert.pem in its data folder).",
  'signaling-closed': 'The connection to the host closed. It is retried by itself.',
  'piece-corrupt': 'A downloaded piece did not match its hash. It is fetched again by itself.',
  'piece-unavailable': 'A piece could not be fetched from any source. Check the host.',
  'storage-full': 'Free some space on this device, or pledge less memory.',
  'storage-failed':
    'A storage call failed or was not answered. A tab goes on in memory; elsewhere, check the data folder.',
  'out-of-memory': 'This device ran out of memory. Pledge less.',
  'provider-unavailable': 'This device cannot run the model with that provider.',
  'self-test-failed': 'This device computes wrong numbers with that provider, so it is not used.',
  'non-finite': 'A stage produced numbers that are not finite. The answer was stopped.',
  'model-invalid':
    'A part of the model is missing or damaged. The message names it, and the way out where there is one.',
  'model-unsupported': 'This architecture or operator is not supported. The message names it.',
  'model-changed': 'The host serves another model now, or is about to. Ask again in a moment.',
  'model-too-large': 'Open the join link on more devices, or let them lend more memory.',
  'not-the-operator':
    'Only whoever runs the host may do this: with the dashboard link that it prints, or on its own machine.',
  'model-not-found': 'Check the name or the path of the model.',
  'hub-denied':
    'Accept the terms on the model’s page, then give a token that may read it: HF_TOKEN or --token-file.',
  'hub-unavailable':
    'Check the network, or name a mirror with HF_ENDPOINT or --hub. The same command goes on where it stopped.',
  'download-corrupt':
    'The hub, or something on the way to it, gave wrong bytes. Run the command again, or use another mirror.',
  'port-taken': 'Choose another port with --port, or stop the program that uses it.',
  'bad-option': 'See --help for the flags.',
  internal: 'This is a fault of CrowdInfer. Please report it with the text of the error.',
} as const

export type ErrorCode = keyof typeof ERROR_CODES

/** How an error crosses a thread or a link: code and message only, never a stack. The message has WIRE_MESSAGE_MAX characters at most. */
export type WireError = { code: ErrorCode; message: string }

/** The one error class. `message` says what happened; `hint` what to do. */
export class CrowdError extends Error {
  override readonly name = 'CrowdError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }

  get hint(): string {
    return ERROR_CODES[this.code]
  }

  toWire(): WireError {
    return { code: this.code, message: cut(this.message) }
  }
}

/** A report that is too long would be refused as a whole, and nobody would learn of the failure. */
function cut(message: string): string {
  return message.length <= WIRE_MESSAGE_MAX ? message : `${message.slice(0, WIRE_MESSAGE_MAX - 1)}…`
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_CODES, value)
}

/** Any thrown value as a CrowdError; what isn't one already becomes `code`. */
export function toCrowdError(thrown: unknown, code: ErrorCode = 'internal'): CrowdError {
  if (thrown instanceof CrowdError) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new CrowdError(code, message, { cause: thrown })
}

/** Rebuilds an error that came from another thread or peer. Unknown codes become `internal`. */
export function fromWire(wire: { code: string; message: string }): CrowdError {
  return new CrowdError(isErrorCode(wire.code) ? wire.code : 'internal', wire.message)
}
