// Conversations in this browser's own database. Nothing of a login is among them, and nothing leaves the browser.

const NAME = "opensearch-ml-stream.playground";
const MOST = 200; // conversations; the oldest go
const [HEADS, BODIES] = ["heads", "bodies"]; // what the list shows, and the rest

export class ConversationStore {
  /** The conversations without their rounds, the latest first. */
  async heads() {
    const heads = await this.run("readonly", (heads) => heads.getAll());
    return heads.sort((one, other) => other.changed - one.changed);
  }

  /** A conversation; undefined where there is none of that id. */
  load(id) {
    return this.run("readonly", (_, bodies) => bodies.get(id));
  }

  /** Keep a conversation; the oldest go where there are too many. */
  async save(conversation) {
    const { id, title, changed } = conversation;
    await this.run("readwrite", (heads, bodies) => {
      bodies.put(structuredClone(conversation));
      return heads.put({ id, title, changed });
    });
    for (const old of (await this.heads()).slice(MOST)) await this.delete(old.id);
  }

  delete(id) {
    return this.run("readwrite", (heads, bodies) => {
      bodies.delete(id);
      return heads.delete(id);
    });
  }

  deleteAll() {
    return this.run("readwrite", (heads, bodies) => {
      bodies.clear();
      return heads.clear();
    });
  }

  /** The result of a request once its transaction is done. */
  async run(mode, act) {
    this.opened ??= open();
    const transaction = (await this.opened).transaction([HEADS, BODIES], mode);
    const request = act(transaction.objectStore(HEADS), transaction.objectStore(BODIES));
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = transaction.onerror = () => reject(notKept(transaction.error));
    });
  }
}

function open() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => [HEADS, BODIES].forEach((name) => request.result.createObjectStore(name, { keyPath: "id" }));
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(notKept(request.error));
  });
}

function notKept(error) {
  const text = error?.name === "QuotaExceededError"
    ? "This browser has no room for the conversation: delete others"
    : "This browser keeps no conversations here (a private window, perhaps): export what you need";
  return Object.assign(new Error(text), { status: null, raw: String(error) });
}
