/** How a text is split before byte pairs are merged, in the words of tokenizer.json. */
export type PreTokenizer = {
  /** Each splits what the ones before it left. */
  readonly splits: readonly string[]
  /** Whether GPT-2's own rule comes last. */
  readonly gpt2: boolean
  /** A whole section that is a token is taken as it is. */
  readonly ignoresMerges: boolean
  readonly beginsWithBos: boolean
  readonly composes: boolean
}

const CONTRACTIONS = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
const SPACES = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+'
const WORDS = '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+'
const SIGNS = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*'
/** Words of which the case changes at most once, as GPT-4o and Tekken have them. */
const UPPER = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]'
const LOWER = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]'
const START = '[^\\r\\n\\p{L}\\p{N}]?'
const SIGNS_AND_SLASHES = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*'

const PLAIN: PreTokenizer = {
  splits: [],
  gpt2: true,
  ignoresMerges: false,
  beginsWithBos: false,
  composes: false,
}
const LLAMA3: PreTokenizer = {
  ...PLAIN,
  splits: [`${CONTRACTIONS}|${WORDS}|\\p{N}{1,3}|${SIGNS}|${SPACES}`],
  gpt2: false,
}
const DIGITS: PreTokenizer = { ...PLAIN, splits: ['\\p{N}'] }
const QWEN2: PreTokenizer = {
  ...PLAIN,
  splits: [`${CONTRACTIONS}|${WORDS}|\\p{N}|${SIGNS}|${SPACES}`],
  gpt2: false,
  composes: true,
}

/** By `tokenizer.ggml.pre`. Which names mean which rule are facts of llama.cpp. */
const PRE_TOKENIZERS: Readonly<Record<string, PreTokenizer>> = {
  'gpt-2': PLAIN,
  'phi-2': PLAIN,
  mpt: PLAIN,
  olmo: PLAIN,
  jais: PLAIN,
  exaone4: PLAIN,
  trillion: PLAIN,
  'llama-bpe': { ...LLAMA3, ignoresMerges: true, beginsWithBos: true },
  llama3: { ...LLAMA3, ignoresMerges: true, beginsWithBos: true },
  'llama-v3': { ...LLAMA3, ignoresMerges: true, beginsWithBos: true },
  falcon3: { ...LLAMA3, ignoresMerges: true, beginsWithBos: true },
  'smaug-bpe': LLAMA3,
  dbrx: LLAMA3,
  qwen2: QWEN2,
  'deepseek-r1-qwen': QWEN2,
  megrez: QWEN2,
  hunyuan: { ...QWEN2, composes: false },
  stablelm2: { ...QWEN2, composes: false },
  smollm: DIGITS,
  starcoder: DIGITS,
  refact: DIGITS,
  'command-r': DIGITS,
  codeshell: DIGITS,
  exaone: DIGITS,
  'minerva-7b': DIGITS,
  bloom: { ...PLAIN, splits: [' ?[^(\\s|.,!?…。，、।۔،)]+'], gpt2: false },
  'gpt3-finnish': { ...PLAIN, splits: [' ?[^(\\s|.,!?…。，、।۔،)]+'], gpt2: false },
  falcon: {
    ...PLAIN,
    splits: [
      '[\\p{P}\\$\\+<=>\\^~\\|`]+',
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)",
      '[0-9][0-9][0-9]',
    ],
    gpt2: false,
  },
  default: {
    ...PLAIN,
    splits: [
      '[\\p{P}\\$\\+<=>\\^~\\|]+',
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)",
      '\\p{N}+',
      '[0-9][0-9][0-9]',
    ],
    gpt2: false,
  },
  tekken: {
    ...PLAIN,
    splits: [
      `${START}${UPPER}*${LOWER}+|${START}${UPPER}+${LOWER}*|\\p{N}|${SIGNS_AND_SLASHES}|${SPACES}`,
    ],
    gpt2: false,
    ignoresMerges: true,
    beginsWithBos: true,
  },
  'gpt-4o': {
    ...PLAIN,
    splits: [
      `${START}${UPPER}*${LOWER}+(?:${CONTRACTIONS})?|${START}${UPPER}+${LOWER}*(?:${CONTRACTIONS})?|\\p{N}{1,3}|${SIGNS_AND_SLASHES}|${SPACES}`,
    ],
    gpt2: false,
  },
}

export function findPreTokenizer(name: string): PreTokenizer | undefined {
  return Object.hasOwn(PRE_TOKENIZERS, name) ? PRE_TOKENIZERS[name] : undefined
}
