/** The current run. Each run has its own instance of the component. */
export const state = {
  answers: {},
  root: '/',
  /** Adds content to the answer. `report.js` replaces it; Node.js has no host. */
  emit: () => {},
};
