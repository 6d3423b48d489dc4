import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDoor, type Door } from './door.ts'

let echo: Server
let door: Door
const sockets: Socket[] = []

beforeEach(async () => {
  echo = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined))
    socket.pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(echo, 'listening')
  // Cast: a server that listens on TCP has an address of this form.
  door = await openDoor((echo.address() as AddressInfo).port)
})

afterEach(async () => {
  await door.close()
  for (const socket of sockets.splice(0)) socket.destroy()
  echo.close()
})

async function enter(): Promise<Socket> {
  const socket = connect(door.port, '127.0.0.1')
  sockets.push(socket.on('error', () => undefined))
  await once(socket, 'connect')
  return socket
}

async function echoes(socket: Socket, text: string): Promise<string> {
  socket.write(text)
  return String((await once(socket, 'data'))[0])
}

test('what enters passes, and a dropped connection ends on both sides', async () => {
  const socket = await enter()
  expect(await echoes(socket, 'hello')).toBe('hello')
  const ended = once(socket, 'close')
  door.drop()
  await ended
  expect(await echoes(await enter(), 'again')).toBe('again')
})

test('a blocked door lets nothing pass and tells nobody; opened again it cuts what stood still', async () => {
  const socket = await enter()
  expect(await echoes(socket, 'hello')).toBe('hello')
  let heard = ''
  socket.on('data', (bytes) => (heard += String(bytes)))
  const ended = once(socket, 'close')
  door.block()
  socket.write('lost')
  // Long enough for an echo through an open door: another connection has gone to and fro.
  const other = connect((echo.address() as AddressInfo).port, '127.0.0.1')
  sockets.push(other)
  expect(await echoes(other, 'beside')).toBe('beside')
  expect([heard, socket.destroyed]).toEqual(['', false])
  door.unblock()
  await ended
  expect(heard).toBe('')
  expect(await echoes(await enter(), 'again')).toBe('again')
})
