import * as store from 'wasi:config/store@0.2.0-rc.1';

import { checked, ToolError } from './errors.js';

const failed = (error) => new ToolError(`the configuration cannot be read: ${error.val}`);

export const get = (key, otherwise) => checked(() => store.get(key), failed) ?? otherwise;
export const all = () => Object.fromEntries(checked(() => store.getAll(), failed));
