/** The current run. Each run has its own instance of the component. */
export const state = { answers: {}, root: '/' };
