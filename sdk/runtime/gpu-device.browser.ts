import { CrowdError } from '../core/errors.ts'

/** Below this, GroupQueryAttention with 32 and more new tokens is wrong (seen at size 4). */
const SUBGROUP_SIZE_MIN = 16

const LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupSizeY',
  'maxComputeWorkgroupSizeZ',
  'maxComputeWorkgroupsPerDimension',
] as const

export type OpenedGpu = {
  readonly device: GPUDevice
  /** `vendor architecture`, as far as the browser tells. */
  readonly label: string
  readonly isSoftware: boolean
}

/**
 * A device of our own, with all that the adapter can do: ORT destroys its own one with its last session.
 * @throws CrowdError provider-unavailable
 */
export async function openGpu(options: { readonly allowSoftware: boolean }): Promise<OpenedGpu> {
  // Typed as always there, but absent on plain http and in older browsers.
  const gpu = navigator.gpu as GPU | undefined
  if (gpu === undefined) {
    const reason = isSecureContext
      ? 'this browser has no WebGPU'
      : 'WebGPU needs https or localhost'
    throw new CrowdError('provider-unavailable', reason)
  }
  const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' })
  if (adapter === null) throw new CrowdError('provider-unavailable', 'no GPU adapter is offered')
  const { info } = adapter
  const isSoftware = info.isFallbackAdapter
  if (isSoftware && !options.allowSoftware) {
    throw new CrowdError('provider-unavailable', 'the only GPU is a software one; WASM is faster')
  }
  const device = await adapter.requestDevice({
    requiredFeatures: wantedFeatures(adapter, isSoftware),
    requiredLimits: Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]])),
  })
  return { device, label: `${info.vendor} ${info.architecture}`.trim(), isSoftware }
}

function wantedFeatures(adapter: GPUAdapter, isSoftware: boolean): GPUFeatureName[] {
  const features: GPUFeatureName[] = []
  if (adapter.features.has('shader-f16')) features.push('shader-f16')
  // Absent in browsers without subgroups, where the feature is absent too.
  const minSize = adapter.info.subgroupMinSize as number | undefined
  const hasLargeSubgroups = minSize !== undefined && minSize >= SUBGROUP_SIZE_MIN
  if (adapter.features.has('subgroups') && hasLargeSubgroups && !isSoftware) {
    features.push('subgroups')
  }
  return features
}
