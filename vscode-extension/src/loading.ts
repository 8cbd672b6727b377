// Imported before anything else, so that the time it takes to load the extension can be told.

export const LOADING = performance.now();
