// Keeps the files of the playground, so that it also opens without a network. VERSION changes with the files.

const VERSION = "{version}";
const FILES = {files};

addEventListener("install", (event) => event.waitUntil(caches.open(VERSION).then((cache) => cache.addAll(FILES)).then(() => skipWaiting())));

addEventListener("activate", (event) => {
  const remove = (names) => Promise.all(names.filter((name) => name.startsWith("segue-playground ") && name !== VERSION).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(remove).then(() => clients.claim()));
});

addEventListener("fetch", (event) => {
  event.respondWith(caches.open(VERSION).then((cache) => cache.match(event.request, { ignoreSearch: true })).then((kept) => kept ?? fetch(event.request)));
});
