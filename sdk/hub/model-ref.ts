import { CrowdError } from '../core/errors.ts'

/** A model on a hub: `org/name[@revision][:part]`. */
export type ModelRef = {
  /** `org/name` */
  readonly repo: string
  /** Branch, tag or commit; null = the hub's default branch. */
  readonly revision: string | null
  /** Which of several weight files: a path in the repository, or a quantisation such as `Q4_K_M`. */
  readonly part: string | null
}

const REF =
  /^([A-Za-z0-9][\w.-]{0,95}\/[A-Za-z0-9][\w.-]{0,95})(?:@([\w][\w./-]{0,199}))?(?::([\w][\w./-]{0,299}))?$/
/** What people copy from the address bar. */
const PAGE =
  /^https?:\/\/(?:www\.)?(?:huggingface\.co|hf\.co)\/([^/?#]+\/[^/?#]+)(?:\/tree\/([^?#]+?))?\/?$/

/**
 * @example parseModelRef('org/name@main:Q4_K_M') // { repo: 'org/name', revision: 'main', part: 'Q4_K_M' }
 * @returns null where the text is none
 */
export function readModelRef(text: string): ModelRef | null {
  const page = PAGE.exec(text)
  if (page) return readModelRef(page[2] === undefined ? (page[1] ?? '') : `${page[1]}@${page[2]}`)
  const match = REF.exec(text)
  // A step upwards is no part of a name, a branch or a path.
  if (match === null || /(^|\/)\.\.?(\/|$)/.test(text) || text.includes('..')) return null
  const [, repo = '', revision, part] = match
  return { repo, revision: revision ?? null, part: part ?? null }
}

/** @throws CrowdError bad-option */
export function parseModelRef(text: string): ModelRef {
  const ref = readModelRef(text)
  if (ref !== null) return ref
  throw new CrowdError(
    'bad-option',
    `"${text.slice(0, 100)}" is no model of a hub: give org/name, org/name@revision or org/name:file`,
  )
}

export function formatModelRef({ repo, revision, part }: ModelRef): string {
  return `${repo}${revision === null ? '' : `@${revision}`}${part === null ? '' : `:${part}`}`
}
