export { describe, run } from './tool.js';
