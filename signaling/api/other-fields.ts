import type { Field } from './field.ts'

const CHAT = ['chat'] as const
const COMPLETIONS = ['completions'] as const
const BOTH = ['chat', 'completions'] as const

const TOOL = { type: 'function', function: { name: 'add', parameters: {} } }
const NO_TOOLS = 'The ring cannot call tools.'
const NO_GRAMMAR = 'The ring cannot be held to a grammar.'
const OPERATOR = 'For the operator of a paid service; nothing is kept here.'

/** The fields that are ignored because they ask for nothing, and those that are refused. */
export const OTHER_FIELDS = [
  { name: 'user', on: BOTH, treatment: 'harmless', note: OPERATOR, example: 'ada' },
  { name: 'metadata', on: CHAT, treatment: 'harmless', note: OPERATOR, example: { a: 'b' } },
  { name: 'safety_identifier', on: CHAT, treatment: 'harmless', note: OPERATOR, example: 'x' },
  { name: 'service_tier', on: CHAT, treatment: 'harmless', note: OPERATOR, example: 'auto' },
  { name: 'prompt_cache_key', on: CHAT, treatment: 'harmless', note: OPERATOR, example: 'x' },
  { name: 'prompt_cache_options', on: CHAT, treatment: 'harmless', note: OPERATOR, example: {} },
  {
    name: 'prompt_cache_retention',
    on: CHAT,
    treatment: 'harmless',
    note: OPERATOR,
    example: '24h',
  },
  {
    name: 'store',
    on: CHAT,
    treatment: 'harmless',
    note: 'Nothing is ever stored, and no path of this API gives a stored answer back.',
    example: true,
  },
  {
    name: 'moderation',
    on: CHAT,
    treatment: 'refused',
    note: 'Nothing is moderated here.',
    example: { model: 'x' },
    neutral: [],
  },
  {
    name: 'reasoning_effort',
    on: CHAT,
    treatment: 'harmless',
    note: 'The models served here do not reason before they answer.',
    example: 'low',
  },
  {
    name: 'parallel_tool_calls',
    on: CHAT,
    treatment: 'harmless',
    note: 'There are no tool calls.',
    example: true,
  },
  {
    name: 'tools',
    on: CHAT,
    treatment: 'refused',
    note: NO_TOOLS,
    example: [TOOL],
    neutral: [[]],
  },
  {
    name: 'tool_choice',
    on: CHAT,
    treatment: 'refused',
    note: NO_TOOLS,
    example: 'required',
    neutral: ['none', 'auto'],
  },
  {
    name: 'functions',
    on: CHAT,
    treatment: 'refused',
    note: NO_TOOLS,
    example: [{ name: 'add' }],
    neutral: [[]],
  },
  {
    name: 'function_call',
    on: CHAT,
    treatment: 'refused',
    note: NO_TOOLS,
    example: { name: 'add' },
    neutral: ['none', 'auto'],
  },
  {
    name: 'response_format',
    on: CHAT,
    treatment: 'refused',
    note: NO_GRAMMAR,
    example: { type: 'json_object' },
    neutral: [{ type: 'text' }],
  },
  {
    name: 'modalities',
    on: CHAT,
    treatment: 'refused',
    note: 'Text only.',
    example: ['text', 'audio'],
    neutral: [['text']],
  },
  {
    name: 'audio',
    on: CHAT,
    treatment: 'refused',
    note: 'Text only.',
    example: { voice: 'alloy', format: 'mp3' },
    neutral: [],
  },
  {
    name: 'prediction',
    on: CHAT,
    treatment: 'refused',
    note: 'Predicted outputs are not supported.',
    example: { type: 'content', content: 'x' },
    neutral: [],
  },
  {
    name: 'verbosity',
    on: CHAT,
    treatment: 'refused',
    note: 'The models served here know no such setting.',
    example: 'low',
    neutral: ['medium'],
  },
  {
    name: 'web_search_options',
    on: CHAT,
    treatment: 'refused',
    note: 'Nothing here searches the web.',
    example: {},
    neutral: [],
  },
  {
    name: 'best_of',
    on: COMPLETIONS,
    treatment: 'refused',
    note: 'No answer is computed to be thrown away: ask for `n`.',
    example: 3,
    neutral: [1],
  },
  {
    name: 'echo',
    on: COMPLETIONS,
    treatment: 'refused',
    note: 'The prompt is not sent back.',
    example: true,
    neutral: [false],
  },
  {
    name: 'suffix',
    on: COMPLETIONS,
    treatment: 'refused',
    note: 'Nothing is filled in between two texts.',
    example: 'end',
    neutral: [''],
  },
  ...['guided_json', 'guided_regex', 'guided_choice', 'guided_grammar', 'structured_outputs'].map(
    (name) => ({
      name,
      on: BOTH,
      treatment: 'refused' as const,
      note: NO_GRAMMAR,
      example: {},
      neutral: [],
    }),
  ),
] as const satisfies readonly Field[]
