/** A growing list of token ids inside immutable state: one token more costs the same however long it is. */
export type TokenList = {
  readonly length: number
  readonly token: number
  readonly before: TokenList
} | null

export function withToken(list: TokenList, token: number): TokenList {
  return { length: lengthOf(list) + 1, token, before: list }
}

export function listOf(tokens: readonly number[]): TokenList {
  return tokens.reduce<TokenList>(withToken, null)
}

export function lengthOf(list: TokenList): number {
  return list === null ? 0 : list.length
}

export function tokensOf(list: TokenList): number[] {
  const tokens: number[] = []
  for (let at = list; at !== null; at = at.before) tokens.push(at.token)
  return tokens.reverse()
}
