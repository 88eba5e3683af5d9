// How the page asks: over HTTP, the server of `segue ui`. The playground of the documentation has another file of this name.

export const STOPPED = "the inspector does not answer; start `segue ui` again";

// Whether an open conversation is still there when the page is loaded again, so that a link can name it.
export const KEEPS = true;

export function send(path, options) {
  return fetch(path, options);
}

// The address of an image that rows name.
export function imageUrl(path) {
  return path;
}

// What a link has besides the view: nothing, because the conversation is with the server.
export async function share() {
  return {};
}

export function readShared() {
  return null;
}
