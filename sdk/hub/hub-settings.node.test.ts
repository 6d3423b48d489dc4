import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withFolder } from '../../test/support/hub-kit.ts'
import { readHubSettings } from './hub-settings.node.ts'

const read = (
  environment: Record<string, string>,
  flags: { hub?: string; tokenFile?: string } = {},
) => readHubSettings({ environment, ...flags })

test('the public hub, unless the environment or a flag names another', async () => {
  expect((await read({})).hubUrl.href).toBe('https://huggingface.co/')
  const environment = { HF_ENDPOINT: 'https://mirror.example/hub' }
  expect((await read(environment)).hubUrl.href).toBe('https://mirror.example/hub/')
  const flag = await read(environment, { hub: 'http://127.0.0.1:8080' })
  expect(flag.hubUrl.href).toBe('http://127.0.0.1:8080/')
})

test.each(['mirror', 'ftp://mirror.example', 'https://me:secret@mirror.example'])(
  'the address "%s" is refused',
  async (hub) => {
    await expect(read({}, { hub })).rejects.toMatchObject({ code: 'bad-option' })
  },
)

test('a token comes from a file or the environment, and its text is in no error', () =>
  withFolder(async (folder) => {
    const tokenFile = join(folder, 'token')
    await writeFile(tokenFile, 'hf_fromFile\n')
    expect((await read({})).token).toBeNull()
    expect((await read({ HF_TOKEN: 'hf_fromEnv' })).token).toBe('hf_fromEnv')
    expect((await read({ HF_TOKEN: 'hf_fromEnv' }, { tokenFile })).token).toBe('hf_fromFile')
    const failed = read({ HF_TOKEN: 'hf_secret\nX: y' })
    await expect(failed).rejects.toMatchObject({ code: 'bad-option' })
    await expect(failed).rejects.not.toThrow(/secret/)
    await expect(read({}, { tokenFile: join(folder, 'none') })).rejects.toThrow(/can't read/)
    await writeFile(tokenFile, '')
    await expect(read({}, { tokenFile })).rejects.toThrow(/does not hold a token/)
  }))

test('a token goes to no mirror without https, but to this machine', async () => {
  const notices: string[] = []
  const mirror = await readHubSettings({
    environment: { HF_TOKEN: 'hf_x', HF_ENDPOINT: 'http://mirror.example' },
    notice: (line) => void notices.push(line),
  })
  expect(mirror.token).toBeNull()
  expect(notices).toEqual(['the token is not sent: http://mirror.example has no https'])
  expect((await read({ HF_TOKEN: 'hf_x', HF_ENDPOINT: 'http://localhost:1' })).token).toBe('hf_x')
})
