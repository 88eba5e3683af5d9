// Keeps the files of the playground, so that it also opens without a network. VERSION changes with the files.

const VERSION = "{version}";
const FILES = {files};

addEventListener("install", (event) => event.waitUntil(caches.open(VERSION).then((cache) => cache.addAll(FILES)).then(() => skipWaiting())));

addEventListener("activate", (event) => {
  const remove = (names) => Promise.all(names.filter((name) => name.startsWith("segue-playground ") && name !== VERSION).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(remove).then(() => clients.claim()));
});

// The browser keeps the compiled code of the runtime only if its own cache gives the file. The folder has the version in its name.
addEventListener("fetch", (event) => {
  const find = () => caches.open(VERSION).then((cache) => cache.match(event.request, { ignoreSearch: true }));
  const isRuntime = event.request.url.includes("/pyodide-");
  event.respondWith(isRuntime ? fetch(event.request, { cache: "force-cache" }).catch(find) : find().then((kept) => kept ?? fetch(event.request)));
});
