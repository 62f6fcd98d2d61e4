// Register the service worker, which shows a page in words when the server cannot be reached.

// Browsers allow it over https and on this machine only.
navigator.serviceWorker
  ?.register("/service-worker.js")
  .catch((problem) => console.warn(problem.message));
