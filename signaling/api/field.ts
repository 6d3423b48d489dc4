/** The two endpoints that answer. */
export type Endpoint = 'chat' | 'completions'

type FieldBase = {
  readonly name: string
  readonly on: readonly Endpoint[]
  /** For people: what it does, or why it does nothing. */
  readonly note: string
}

export type Field =
  /** Does what OpenAI's documentation says. `example` changes the request, `wrong` is refused. */
  | (FieldBase & {
      readonly treatment: 'honoured'
      readonly example: unknown
      readonly wrong: unknown
    })
  /** Accepted and ignored: the answer is the same with and without it. */
  | (FieldBase & { readonly treatment: 'harmless'; readonly example: unknown })
  /** 400 with the field's name, but for null and the `neutral` values, which ask for nothing. */
  | (FieldBase & {
      readonly treatment: 'refused'
      readonly example: unknown
      readonly neutral: readonly unknown[]
    })
