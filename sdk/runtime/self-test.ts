import type { StageEngine } from './stage-engine.ts'
export async function selfTest(engine: StageEngine): Promise<void> {
  await engine.close()
}
