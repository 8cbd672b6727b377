// The user's settings: a VS Code that shows the editor and asks for nothing.

export type Settings = { [name: string]: unknown };

export const QUIET: Settings = {
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.enableExperiments": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "telemetry.telemetryLevel": "off",
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": "off",
  "extensions.ignoreRecommendations": true,
  "chat.disableAIFeatures": true,
  "security.workspace.trust.enabled": false,
  "files.autoSave": "off",
  "git.enabled": false,
};
