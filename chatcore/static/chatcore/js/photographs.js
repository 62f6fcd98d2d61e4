// Make photographs smaller before they are sent, as far as this browser can read them.

const MAX_SIDE = 4096; // pixels; models look at about 1,600
const LARGE_BYTES = 4 * 1024 * 1024;
const FOREIGN = /^image\/(heic|heif|avif)$|\.(heic|heif|avif)$/i;

// Return the file, or a smaller one in its place. The server reads what this browser cannot.
export async function makePhotographFit(file, maxBytes) {
  const isForeign = FOREIGN.test(file.type) || FOREIGN.test(file.name);
  const isLarge = /^image\/(jpeg|png|webp)$/.test(file.type) && file.size > LARGE_BYTES;
  if (!isForeign && !isLarge) return file;
  try {
    const picture = await createImageBitmap(file);
    const scale = Math.min(1, MAX_SIDE / Math.max(picture.width, picture.height));
    if (!isForeign && scale === 1 && file.size <= maxBytes) return file;
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(picture.width * scale);
    canvas.height = Math.round(picture.height * scale);
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    picture.close();
    const type = file.type === "image/png" ? "image/png" : "image/jpeg";
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, type, 0.88));
    const name = file.name.replace(/\.\w+$/, "") + (type === "image/png" ? ".png" : ".jpg");
    return blob ? new File([blob], name, { type }) : file;
  } catch {
    return file; // no picture that it knows
  }
}
