export * as ask from './ask.js';
export * as config from './config.js';
export * as report from './report.js';
export * as storage from './storage.js';
export * as tools from './tools.js';
export { ToolError } from './errors.js';
export { readDirectory, readFile, writeFile } from './files.js';
export { prompt, resource } from './items.js';
export { tool } from './tool.js';
