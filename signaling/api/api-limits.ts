/** Bounds of the API alone. What peers meet or other folders share is in `sdk/core/limits.ts`. */

/**
 * A request's bytes. The largest window that this build takes has 131,072 tokens: half a megabyte of prose,
 * a few of what a tokenizer or JSON likes less.
 */
export const BODY_MAX_BYTES = 4 * 1024 * 1024
/** Turns of a conversation; the template is rendered turn by turn. */
export const MESSAGES_MAX = 4_096
/** Answers of one request, over all its prompts. */
export const CHOICES_MAX = 8
/** Long enough for any turn marker. */
export const STOP_MAX_CHARS = 1_000
export const STOPS_MAX = 16
/** OpenAI's default for completions. */
export const COMPLETION_TOKENS_DEFAULT = 16
/** A stream that says nothing for this long gets a comment: proxies cut silent ones after half a minute and more. */
export const STREAM_COMMENT_MS = 5_000
/** What a stream's client may leave unread, as text of events: more than the whole answer of most models. */
export const UNREAD_MAX_BYTES = 1024 * 1024
