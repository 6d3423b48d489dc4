import type { GenerateRequest } from '../../sdk/client/client-types.ts'

/** As the number fields of the page hold them: null or undefined when empty. */
export type ChatSettings = {
  maxTokens: number | null | undefined
  temperature: number | null | undefined
  seed: number | null | undefined
}

export const TEMPERATURE_MAX = 2
const SEED_MAX = 0xffff_ffff

/** Greedy and up to the end of the context: the same question gives the same text. */
export function defaultSettings(): ChatSettings {
  return { maxTokens: null, temperature: 0, seed: 0 }
}

/** What a request gets; values outside the limits are brought to the nearest one inside. */
export function requestOptions(
  settings: ChatSettings,
): Pick<GenerateRequest, 'maxTokens' | 'sampling'> {
  const sampling = {
    temperature: clamp(settings.temperature ?? 0, TEMPERATURE_MAX),
    seed: Math.floor(clamp(settings.seed ?? 0, SEED_MAX)),
  }
  const maxTokens = Math.floor(settings.maxTokens ?? 0)
  return maxTokens > 0 ? { maxTokens, sampling } : { sampling }
}

function clamp(value: number, max: number): number {
  return Number.isFinite(value) ? Math.min(Math.max(value, 0), max) : 0
}
