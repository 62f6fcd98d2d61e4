// Register the service worker, which shows a page in words when the server cannot be reached.

import { buildPath } from "./paths.js";

// Browsers allow it over https and on this machine only.
navigator.serviceWorker
  ?.register(buildPath("service-worker.js"))
  .catch((problem) => console.warn(problem.message));
