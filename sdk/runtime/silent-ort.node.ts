/**
 * Keeps ONNX Runtime from reporting its use to its maker, as its build for Linux does unless told otherwise. To be
 * called on the main thread before the library loads: a thread's environment is a copy that it does not see. Whoever
 * sets the variable decides for themselves.
 */
export function silenceOrt(): void {
  process.env['ORT_DISABLE_TELEMETRY'] ??= '1'
}
