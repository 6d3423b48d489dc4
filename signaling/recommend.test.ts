import { expect, test } from 'vitest'
import { readCatalogue } from './catalogue.ts'
import { lentDevices } from './lent-devices.ts'
import { recommend } from './recommend.ts'

const GB = 1e9
const gpu = (...gigabytes: readonly number[]) =>
  gigabytes.map((size) => ({ bytes: size * GB, provider: 'webgpu' as const }))

test('the largest that fits comes first, and more devices never hold less', async () => {
  const entries = await readCatalogue()
  const few = recommend(entries, gpu(2), 2048)
  const many = recommend(entries, gpu(2, 2, 2, 2), 2048)
  expect(few.length).toBeGreaterThan(0)
  const parameters = many.map(({ entry }) => entry.parameters)
  expect(parameters).toEqual([...parameters].sort((a, b) => b - a))
  expect(parameters[0]).toBeGreaterThan(few[0]?.entry.parameters ?? Infinity)
  const ids = new Set(many.map(({ entry }) => entry.id))
  for (const { entry } of few) expect(ids).toContain(entry.id)
})

test('a large model is split over devices that none of them could hold it on', async () => {
  const [llama] = (await readCatalogue()).filter(({ id }) => id.includes('Llama-3.1-8B'))
  if (!llama) throw new Error('not in the catalogue')
  expect(recommend([llama], gpu(4), 2048)).toEqual([])
  const [tight] = recommend([llama], gpu(4, 4), 2048)
  expect(tight).toMatchObject({ dtype: 'q4', contextLength: 2048, stages: 2 })
  const [roomy] = recommend([llama], gpu(4, 4, 4), 2048)
  expect(roomy).toMatchObject({ dtype: 'q8', stages: 3 })
})

test('weights are f32 on WASM, so less fits; a context is never longer than the model has', async () => {
  const entries = await readCatalogue()
  const wasm = gpu(2).map(({ bytes }) => ({ bytes, provider: 'wasm' as const }))
  const onWasm = recommend(entries, wasm, 2048)
  const onGpu = recommend(entries, gpu(2), 2048)
  expect(onWasm.length).toBeLessThan(onGpu.length)
  const tiny = recommend(entries, gpu(64), 10_000).find(({ entry }) =>
    entry.id.startsWith('TinyLlama'),
  )
  expect(tiny?.contextLength).toBe(2048)
})

test('devices are read from their list', async () => {
  expect(await lentDevices({ devices: '2GB, 512mb:wasm,1.5GB:cuda' })).toEqual([
    { bytes: 2e9, provider: 'webgpu' },
    { bytes: 512e6, provider: 'wasm' },
    { bytes: 1.5e9, provider: 'cuda' },
  ])
  for (const devices of ['', '2', '0GB', '2GB:tpu', '2GB,,1GB'])
    await expect(lentDevices({ devices })).rejects.toThrow(/is no device/)
  await expect(lentDevices({})).rejects.toThrow(/--devices 2GB,4GB, or --swarm/)
})
