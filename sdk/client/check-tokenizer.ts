import { CrowdError } from '../core/errors.ts'
import { isRecord } from './chat-template.ts'

type Fields = Readonly<Record<string, unknown>>

/** Larger than any vocabulary. */
const ID_MAX = 2 ** 24
/** The library takes any other for what the rest of the file looks like, and gives other tokens without a word. */
const KINDS: readonly unknown[] = ['BPE', 'Unigram', 'WordPiece']

/**
 * tokenizer.json, of which the library below checks nothing; its model has its type, which old files leave out.
 * @throws CrowdError model-invalid, model-unsupported (the part is named)
 */
export function checkTokenizer(json: unknown): Fields {
  if (!isRecord(json)) throw invalid('is not an object')
  const model = json['model']
  if (!isRecord(model)) throw invalid('has no "model"')
  const type = kindOf(model)
  if (type === 'Unigram') checkPieces(model['vocab'])
  else checkVocabulary(model['vocab'])
  if (type === 'BPE') checkMerges(model['merges'])
  checkAdded(json['added_tokens'])
  return { ...json, model: { ...model, type } }
}

function kindOf(model: Fields): unknown {
  const type = model['type']
  if (type === undefined && Array.isArray(model['vocab'])) return 'Unigram'
  if (type === undefined && model['merges'] !== undefined) return 'BPE'
  if (KINDS.includes(type)) return type
  const what = type === undefined ? 'is missing and' : shown(type)
  throw new CrowdError(
    'model-unsupported',
    `tokenizer.json: model.type ${what} is not supported. Supported: ${KINDS.join(', ')}.`,
  )
}

function checkVocabulary(vocab: unknown): void {
  if (!isRecord(vocab)) throw invalid('has no vocabulary: model.vocab is not an object')
  for (const [token, id] of Object.entries(vocab)) checkId(id, token)
}

function checkPieces(vocab: unknown): void {
  if (!Array.isArray(vocab)) throw invalid('has no vocabulary: model.vocab is not a list')
  const isPiece = (piece: unknown): boolean =>
    Array.isArray(piece) && typeof piece[0] === 'string' && typeof piece[1] === 'number'
  const wrong = vocab.findIndex((piece) => !isPiece(piece))
  if (wrong >= 0) throw invalid(`has no text and score as model.vocab[${wrong}]`)
}

/** All "a b", or all ["a", "b"]. */
function checkMerges(merges: unknown): void {
  if (!Array.isArray(merges)) throw invalid('has no merges: model.merges is not a list')
  const isPair = Array.isArray(merges[0]) ? isTextPair : isSpacedPair
  const wrong = merges.findIndex((merge) => !isPair(merge))
  if (wrong < 0) return
  throw invalid(`has no pair as model.merges[${wrong}], but ${shown(merges[wrong])}`)
}

function isTextPair(merge: unknown): boolean {
  return Array.isArray(merge) && merge.length === 2 && merge.every((half) => isText(half))
}

function isSpacedPair(merge: unknown): boolean {
  if (typeof merge !== 'string') return false
  const halves = merge.split(' ')
  return halves.length === 2 && halves.every((half) => isText(half))
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function checkAdded(added: unknown): void {
  if (added === undefined || added === null) return
  if (!Array.isArray(added)) throw invalid('has added_tokens that are not a list')
  added.forEach((entry: unknown, i) => {
    if (!isRecord(entry) || typeof entry['content'] !== 'string') {
      throw invalid(`has no text in added_tokens[${i}]`)
    }
    checkId(entry['id'], entry['content'])
  })
}

function checkId(id: unknown, token: string): void {
  const isId = typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < ID_MAX
  if (!isId) throw invalid(`gives ${shown(token)} the id ${shown(id)}`)
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 80)
}

function invalid(what: string): CrowdError {
  return new CrowdError('model-invalid', `tokenizer.json ${what}.`)
}
