// Show a page in words when the server cannot be reached. Nothing else is kept: chats are not.

// Below a path, other programs of the host have caches at the same place.
const BASE = new URL(self.registration.scope).pathname.slice(0, -1);
const CACHE = `offline-1${BASE}`;
const OFFLINE_PAGE = `${BASE}/offline/`;
const isOlder = (name) => name !== CACHE && /^offline-\d+(.*)$/.exec(name)?.[1] === BASE;

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.add(OFFLINE_PAGE)));
});

self.addEventListener("activate", (event) => {
  const remove = (name) => isOlder(name) && caches.delete(name);
  event.waitUntil(caches.keys().then((names) => Promise.all(names.map(remove))));
});

self.addEventListener("fetch", (event) => {
  if (event.request.mode !== "navigate" || event.request.method !== "GET") return;
  event.respondWith(fetch(event.request).catch(() => caches.match(OFFLINE_PAGE)));
});

// A click on a notification of a phone comes back to its chat.
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { data: address } = event.notification;
  event.waitUntil(
    self.clients.matchAll({ type: "window", includeUncontrolled: true }).then((pages) => {
      const page = pages.find(({ url }) => url === address);
      return page ? page.focus() : self.clients.openWindow(address);
    }),
  );
});
