/** A promise with its handles outside. */
export type Deferred<T> = {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(error: Error): void
}

export function createDeferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => undefined
  let reject: (error: Error) => void = () => undefined
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // Whoever awaits gets the error; nobody awaiting is not a crash.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
