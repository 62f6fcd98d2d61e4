"""Read one photograph in a process of its own, under limits of time and memory.

`photographs.py` runs this file as a program: bytes on the standard input, a JPEG or PNG on the
standard output. The exit code is another than 0 when the picture cannot be read: a damaged one can
raise anything.
"""

import io
import resource
import sys

MAX_SIDE = 4_096
MAX_PIXELS = 120_000_000  # of the picture as it comes; the largest phones make 108 million
CPU_SECONDS = 20
MEMORY_BYTES = 2 << 30


def main() -> int:
    """Read the picture and write it anew, turned as it was held."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import pillow_heif
    from PIL import Image, ImageOps

    pillow_heif.register_heif_opener()
    Image.MAX_IMAGE_PIXELS = None  # the next lines ask for it, before anything is unpacked
    with Image.open(io.BytesIO(sys.stdin.buffer.read())) as opened:
        if opened.width * opened.height > MAX_PIXELS:
            return 2
        opened.draft("RGB", (MAX_SIDE, MAX_SIDE))  # a JPEG is unpacked at about this size
        picture = ImageOps.exif_transpose(opened)
        has_alpha = picture.has_transparency_data
        picture = picture.convert("RGBA" if has_alpha else "RGB")
        picture.thumbnail((MAX_SIDE, MAX_SIDE))
        if has_alpha:
            picture.save(sys.stdout.buffer, "PNG")
        else:
            picture.save(sys.stdout.buffer, "JPEG", quality=88)
    return 0


if __name__ == "__main__":
    sys.exit(main())
