import js from '@eslint/js'
import svelte from 'eslint-plugin-svelte'
import globals from 'globals'
import ts from 'typescript-eslint'

const strict = {
  '@typescript-eslint/no-floating-promises': 'error',
  '@typescript-eslint/no-misused-promises': 'error',
  '@typescript-eslint/switch-exhaustiveness-check': 'error',
  '@typescript-eslint/consistent-type-imports': 'error',
  '@typescript-eslint/consistent-type-definitions': 'off',
  '@typescript-eslint/restrict-template-expressions': [
    'error',
    { allowNumber: true, allowBoolean: true },
  ],
  '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
  // A cast or a "!" where the checker can't see an invariant is allowed in typed-array loops only; see CONTRIBUTING.md.
  '@typescript-eslint/no-non-null-assertion': 'off',
  'no-console': 'error',
  'max-lines': ['error', { max: 350, skipBlankLines: true, skipComments: true }],
  // A factory is one closure, and the functions inside it count too.
  'max-lines-per-function': ['error', { max: 160, skipBlankLines: true, skipComments: true }],
  'max-params': ['error', 4],
  complexity: ['error', { max: 12, variant: 'modified' }],
  // Knows nothing of what a closure changed during an await.
  '@typescript-eslint/no-unnecessary-condition': 'off',
  // Our objects are closures: no method uses `this`.
  '@typescript-eslint/unbound-method': 'off',
}

export default ts.config(
  { ignores: ['dist/', 'node_modules/', 'public/', 'tools/builtin-model/', '.crowdinfer/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts', '**/*.svelte', '**/*.svelte.ts'],
    extends: [...ts.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: {
        project: [
          'sdk/core/tsconfig.json',
          'sdk/protocol/tsconfig.json',
          'sdk/tsconfig.json',
          'signaling/tsconfig.json',
          'web/tsconfig.json',
          'test/tsconfig.json',
        ],
        tsconfigRootDir: import.meta.dirname,
        extraFileExtensions: ['.svelte'],
      },
    },
    rules: strict,
  },
  ...svelte.configs.recommended,
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: {
      globals: globals.browser,
      parserOptions: { parser: ts.parser },
    },
    rules: { 'svelte/no-at-html-tags': 'error', 'no-undef': 'off' },
  },
  { files: ['**/*.mjs', '**/*.js'], languageOptions: { globals: globals.node } },
  {
    files: ['**/*.mjs', '**/main.ts', 'signaling/cli.ts', 'signaling/**/*-command.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    // A suite is one long describe(); its length says nothing about its parts.
    files: ['**/*.test.ts', 'test/**/*.ts'],
    rules: { 'max-lines-per-function': 'off' },
  },
)
