/**
 * Puts text on the clipboard. The modern call exists only in a secure context, so a plain-http page falls
 * back to a selection. False: the person has to copy by hand.
 */
export async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      // Denied by a permission: the selection may still work.
      return copyBySelection(text)
    }
  }
  return copyBySelection(text)
}

function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'visually-hidden'
  field.setAttribute('readonly', '')
  const focused = document.activeElement
  document.body.append(field)
  field.select()
  // The only way without a secure context.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const copied = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return copied
}
