import type { Page } from 'playwright-core'

export type PageAnswer = {
  readonly text: string
  /** `done`, `stopped` or `failed`. */
  readonly phase: string
  readonly tokens: number
  readonly firstTokenMs: number
  readonly hopMs: number
}

/** Asks on the chat page as a person does, and waits for the end of the answer. */
export async function askOnPage(
  page: Page,
  question: string,
  limitMs = 60_000,
): Promise<PageAnswer> {
  const before = await page.getByTestId('turn').count()
  await page.getByTestId('composer').fill(question)
  await page.getByTestId('send').click({ timeout: limitMs })
  const turn = page.getByTestId('turn').nth(before)
  await page.waitForFunction(
    (index) => {
      const phase =
        document.querySelectorAll<HTMLElement>('[data-testid="turn"]')[index]?.dataset['phase']
      return phase !== undefined && phase !== 'waiting' && phase !== 'writing'
    },
    before,
    { timeout: limitMs },
  )
  const attribute = async (name: string): Promise<string> =>
    (await turn.getAttribute(`data-${name}`)) ?? ''
  return {
    text: (await turn.getByTestId('answer').textContent()) ?? '',
    phase: await attribute('phase'),
    tokens: Number(await attribute('tokens')),
    firstTokenMs: Number(await attribute('first-token-ms')),
    hopMs: Number(await attribute('hop-ms')),
  }
}
