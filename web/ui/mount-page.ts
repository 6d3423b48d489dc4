import { mount, type Component } from 'svelte'
import './app.css'

/** Puts a page's component in place and marks the document as ready. */
export function mountPage<Props extends Record<string, unknown>>(
  component: Component<Props>,
  props: Props,
): void {
  const target = document.getElementById('app')
  if (target === null) throw new Error('the page has no #app element')
  mount(component, { target, props })
  document.documentElement.dataset['ready'] = '1'
  // Another invite link pasted over this one is another pool: begin anew.
  window.addEventListener('hashchange', () => location.reload())
}
