/** Vite gives the address of a file that it serves or emits. */
declare module '*?url' {
  const url: string
  export default url
}
