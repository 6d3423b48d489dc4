import { defaultSettings, type ChatSettings } from './settings.ts'

/** The settings as the fields of the page change them. */
export class SettingsState implements ChatSettings {
  maxTokens = $state(defaultSettings().maxTokens)
  temperature = $state(defaultSettings().temperature)
  seed = $state(defaultSettings().seed)
}
