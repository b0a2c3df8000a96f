// Images and files beside a message: chosen, pasted or dropped; kept as data URLs, within what a request may hold.

import { byId, make } from "./elements.js";

const MOST_BYTES = 6 * 1024 * 1024; // of a message's attachments together: a request may have 10 MiB, and base64 is longer
const MOST_FILES = 10;
const MOST_PIXELS = 2048; // of an image's side: a longer one is made smaller, as providers do
const SMALL_ENOUGH = 1024 * 1024; // bytes of an image that is left as it is

export class Attachments {
  /** `onProblem(text)` is told why something was not attached. */
  constructor(form, onProblem) {
    this.list = byId("attachments");
    this.onProblem = onProblem;
    this.value = []; // {name, type, size, url}
    const files = byId("files");
    byId("attach").addEventListener("click", () => files.click());
    files.addEventListener("change", async () => {
      await this.add(files.files);
      files.value = "";
    });
    form.addEventListener("paste", (event) => {
      if (!event.clipboardData.files.length) return;
      event.preventDefault();
      this.add(event.clipboardData.files);
    });
    for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
      document.addEventListener(kind, (event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        form.classList.toggle("is-dropped-on", kind === "dragenter" || kind === "dragover");
        if (kind === "drop") this.add(event.dataTransfer.files);
      });
    }
  }

  async add(files) {
    for (const file of [...files]) {
      try {
        await this.addOne(file);
      } catch (error) {
        this.onProblem(error.message);
      }
    }
    this.show();
  }

  async addOne(file) {
    if (this.value.length >= MOST_FILES) throw new Error(`A message takes ${MOST_FILES} files.`);
    const name = file.name || "file";
    const blob = await smaller(file);
    if (this.size + blob.size > MOST_BYTES) {
      throw new Error(`“${name}” is too large: the files of a message may have ${MOST_BYTES / 2 ** 20} MB together.`);
    }
    const type = blob.type || "application/octet-stream";
    this.value.push({ name, type, size: blob.size, url: await dataUrl(blob) });
  }

  get size() {
    return this.value.reduce((sum, { size }) => sum + size, 0);
  }

  /** What is attached, which leaves the form. */
  take() {
    const taken = this.value;
    this.set([]);
    return taken;
  }

  set(value) {
    this.value = value;
    this.show();
  }

  show() {
    this.list.replaceChildren(...this.value.map((one, index) => {
      const remove = make("button", { type: "button", className: "icon small", "aria-label": `Remove ${one.name}` }, "×");
      remove.addEventListener("click", () => {
        this.value.splice(index, 1);
        this.show();
        byId("prompt").focus();
      });
      return make("li", {}, attachmentElement(one), remove);
    }));
  }
}

/** An attachment as it is seen in the form and in the thread. */
export function attachmentElement({ name, type, url }) {
  if (type.startsWith("image/") && url.startsWith("data:image/")) return make("img", { src: url, alt: name, title: name });
  return make("span", { className: "file" }, name);
}

/** The image in a size that models take; anything else as it is. */
async function smaller(file) {
  if (!/^image\/(png|jpeg|webp)$/.test(file.type) || file.size <= SMALL_ENOUGH) return file;
  const image = await createImageBitmap(file);
  const scale = Math.min(1, MOST_PIXELS / Math.max(image.width, image.height));
  const canvas = new OffscreenCanvas(Math.round(image.width * scale), Math.round(image.height * scale));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const drawn = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.9 });
  return drawn.size < file.size ? drawn : file;
}

function dataUrl(blob) {
  const reader = new FileReader();
  return new Promise((resolve, reject) => {
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error("The file cannot be read."));
    reader.readAsDataURL(blob);
  });
}
