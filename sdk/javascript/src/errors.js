/** The failure of a tool: one sentence that the model can act on. */
export class ToolError extends Error {
  constructor(message, { transient = false, trace = [], cause } = {}) {
    super(message, { cause });
    this.name = 'ToolError';
    this.transient = transient;
    this.trace = trace;
  }
}

/** Ends a run with a question. Not an `Error`, since it is not a failure. */
export class NeedsAnswer {
  constructor(question) {
    this.question = question;
  }
}

/** Calls a function of the host, whose errors are thrown with a `payload`. */
export function checked(action, describe) {
  try {
    return action();
  } catch (error) {
    if (error?.payload === undefined) throw error;
    throw describe(error.payload);
  }
}
