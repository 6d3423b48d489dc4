/** What transformers makes a tokenizer.json of. */
const VOCABULARIES = ['vocab.json', 'merges.txt', 'tokenizer.model', 'spiece.model', 'vocab.txt']
/** How weights were published before safetensors. */
const OLD_WEIGHTS =
  /(^|\/)(pytorch_model.*\.bin|consolidated.*\.pth|tf_model\.h5|.*\.(pt|pth|ckpt))$/i
const SHOWN_MAX = 3

/**
 * What to do where a model has no tokenizer.json, by what it has instead.
 * @param from what transformers would open: a hub's id or a path
 * @param names of the files that are there
 */
export function tokenizerRemedy(from: string, names: readonly string[]): string {
  const present = VOCABULARIES.filter((name) => names.includes(name))
  if (present.length === 0) return 'Add the one that the model was published with.'
  const call = `AutoTokenizer.from_pretrained("${from}").save_pretrained("${folderOf(from)}")`
  return `It has ${listed(present)}, of which transformers makes one: ${call}. Add the folder with that file and the weights.`
}

/** A hub's id is no folder of this machine. */
function folderOf(from: string): string {
  return /^[\w.-]+\/[\w.-]+$/.test(from) ? (from.split('/')[1] ?? from) : from
}

/** What to do where a model has no safetensors, by what it has instead; '' = there is nothing to say. */
export function weightsRemedy(from: string, names: readonly string[]): string {
  const gguf = names.filter((name) => /\.gguf$/i.test(name))
  if (gguf.length > 0) return `Give the GGUF file itself: ${listed(gguf)}.`
  const old = names.filter((name) => OLD_WEIGHTS.test(name))
  if (old.length === 0) return ''
  const call = `AutoModelForCausalLM.from_pretrained("${from}").save_pretrained("${folderOf(from)}")`
  return `It has ${listed(old)}, of which transformers makes safetensors: ${call}.`
}

function listed(names: readonly string[]): string {
  const more = names.length - SHOWN_MAX
  const shown = names.slice(0, SHOWN_MAX).join(', ')
  return more > 0 ? `${shown} and ${more} more` : shown
}
