/** What runs a stage: WebGPU or WASM in a tab, CPU, CUDA or WebGPU in Node. */
export type Provider = 'webgpu' | 'wasm' | 'cpu' | 'cuda'
