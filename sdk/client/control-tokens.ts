/** A token that steers the model, such as the end of a turn; it has a spelling but is never text. */
export type ControlToken = {
  readonly id: number
  readonly content: string
  /** Takes the white space before or after it along. */
  readonly lstrip: boolean
  readonly rstrip: boolean
}

export type Section =
  | { readonly kind: 'control'; readonly id: number }
  | { readonly kind: 'text'; readonly text: string }

export type ControlTokens = {
  readonly ids: ReadonlySet<number>
  /** Cuts a rendered template at the spellings of control tokens; empty texts are left out. */
  split(text: string): Section[]
  /** Puts `mark` inside every spelling of a control token, so that `split` passes it over. */
  breakUp(text: string, mark: string): string
}

export function createControlTokens(tokens: readonly ControlToken[]): ControlTokens {
  const byContent = new Map(tokens.map((token) => [token.content, token]))
  const pattern = patternOf([...byContent.keys()])

  function split(text: string): Section[] {
    const sections: Section[] = []
    let stripNext = false
    const addText = (raw: string, stripEnd: boolean): void => {
      const start = stripNext ? raw.trimStart() : raw
      const trimmed = stripEnd ? start.trimEnd() : start
      if (trimmed !== '') sections.push({ kind: 'text', text: trimmed })
    }
    let end = 0
    for (const match of pattern === null ? [] : text.matchAll(pattern)) {
      const token = byContent.get(match[0])
      if (token === undefined) continue
      addText(text.slice(end, match.index), token.lstrip)
      sections.push({ kind: 'control', id: token.id })
      stripNext = token.rstrip
      end = match.index + match[0].length
    }
    addText(text.slice(end), false)
    return sections
  }

  function breakUp(text: string, mark: string): string {
    if (pattern === null) return text
    let broken = text
    // Again until none is left: spellings may overlap.
    for (;;) {
      const next = broken.replace(pattern, (spelling) => {
        const [first = ''] = spelling
        return first + mark + spelling.slice(first.length)
      })
      if (next === broken) return broken
      broken = next
    }
  }

  return { ids: new Set(tokens.map(({ id }) => id)), split, breakUp }
}

/** Any of the spellings, longer ones first. */
function patternOf(spellings: readonly string[]): RegExp | null {
  // A token of one character can't be broken up; tokenizers keep such ones as plain text.
  const usable = spellings.filter((spelling) => Array.from(spelling).length > 1)
  if (usable.length === 0) return null
  const escaped = usable
    .toSorted((a, b) => b.length - a.length)
    .map((spelling) => spelling.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`))
  return new RegExp(escaped.join('|'), 'g')
}
