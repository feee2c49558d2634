"""Writes colour_profiles.safetensors: pictures with ICC profiles and what Pillow's ImageCms makes of them.

    python make_colour_profiles.py      (pillow 13.0.0 with lcms 2.19, numpy 2.4.6)

The profiles are made here, too: two matrix profiles, one of grey, one of CMYK with a table.
"""

import io
import json
import struct
from pathlib import Path

import numpy as np
from PIL import Image, ImageCms

HERE = Path(__file__).parent
SIZE = (29, 21)
BACKGROUND = (32, 64, 96)
D50 = (0.9642, 1.0, 0.8249)
ADOBE = ((0.6097, 0.3111, 0.0195), (0.2053, 0.6257, 0.0609), (0.1492, 0.0632, 0.7446))
P3 = ((0.5151, 0.2412, -0.0011), (0.2919, 0.6922, 0.0419), (0.1571, 0.0666, 0.7841))
SRGB = ImageCms.createProfile("sRGB")
expected = {}


def s15(*values):
    return b"".join(struct.pack(">i", round(v * 65536)) for v in values)


def xyz(values):
    return b"XYZ \0\0\0\0" + s15(*values)


def gamma(value):
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(value * 256))


def srgb_curve():
    return b"para\0\0\0\0" + struct.pack(">HH", 3, 0) + s15(2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)


def text(words):
    return b"text\0\0\0\0" + words.encode() + b"\0"


def description(words):
    return b"desc\0\0\0\0" + struct.pack(">I", len(words) + 1) + words.encode() + bytes(1 + 8 + 3 + 67)


def profile(kind, space, pcs, words, tags):
    tags = {b"desc": description(words), b"cprt": text("public domain"), b"wtpt": xyz(D50), **tags}
    at, table, bodies = 128 + 4 + 12 * len(tags), b"", b""
    for name, body in tags.items():
        table += name + struct.pack(">II", at + len(bodies), len(body))
        bodies += body + bytes(-len(body) % 4)
    size = at + len(bodies)
    header = struct.pack(">I4sI4s4s4s", size, b"\0\0\0\0", 0x02400000, kind, space, pcs)
    header += struct.pack(">6H", 2026, 1, 1, 0, 0, 0) + b"acsp" + bytes(28) + s15(*D50) + bytes(48)
    assert len(header) == 128
    return header + struct.pack(">I", len(tags)) + table + bodies


def matrix(words, colorants, curve):
    names = (b"rXYZ", b"gXYZ", b"bXYZ")
    tags = {name: xyz(colorant) for name, colorant in zip(names, colorants)}
    return profile(b"mntr", b"RGB ", b"XYZ ", words, tags | dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve))


def lab8(rgb):
    """8-bit Lab of linear sRGB values under D50."""
    to_xyz = np.array(((0.4361, 0.3851, 0.1431), (0.2225, 0.7169, 0.0606), (0.0139, 0.0971, 0.7141)))
    t = np.clip(to_xyz @ rgb / D50, 0, None)
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    lab = (116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2]))
    return [round(min(255, max(0, v))) for v in (lab[0] * 2.55, lab[1] + 128, lab[2] + 128)]


def ink():
    """A table of 5^4 nodes: multiplied inks of unequal strength."""
    grid = 5
    nodes = b""
    for index in np.ndindex(grid, grid, grid, grid):
        c, m, y, k = (i / (grid - 1) for i in index)
        nodes += bytes(lab8(np.array(((1 - 0.9 * c) ** 2, (1 - 0.8 * m) ** 2, (1 - 0.7 * y) ** 2)) * (1 - 0.95 * k) ** 2))
    table = b"mft1\0\0\0\0" + bytes((4, 3, grid, 0)) + s15(1, 0, 0, 0, 1, 0, 0, 0, 1)
    table += bytes(range(256)) * 4 + nodes + bytes(range(256)) * 3
    return profile(b"prtr", b"CMYK", b"Lab ", "inks", {b"A2B0": table})


def picture():
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
    waves = [127 + 127 * np.sin(x / (4 + 3 * c) + y / (7 - 2 * c) + c) for c in range(3)]
    return Image.fromarray(np.clip(np.stack(waves, -1), 0, 255).astype(np.uint8))


def alpha():
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
    return Image.fromarray(((x * 9 + y * 5) % 256).astype(np.uint8))


def convert(image, icc, mode):
    source = ImageCms.ImageCmsProfile(io.BytesIO(icc))
    return ImageCms.profileToProfile(image, source, SRGB, outputMode=mode)


def put(name, image, kind, icc, wanted=None, **options):
    """wanted: None: what ImageCms makes of the file as Pillow reads it."""
    file = io.BytesIO()
    image.save(file, kind, icc_profile=icc, **options)
    if wanted is None:
        wanted = convert(Image.open(io.BytesIO(file.getvalue())), icc, "RGB")
    if wanted.mode == "RGBA":
        wanted = Image.alpha_composite(Image.new("RGBA", SIZE, BACKGROUND + (255,)), wanted).convert("RGB")
    expected[f"{name}/file"] = np.frombuffer(file.getvalue(), np.uint8)
    expected[f"{name}/rgb"] = np.array(wanted)


def deep_png(rgb, icc):
    """16 bits a sample, which Pillow cannot write; low bytes are noise."""
    import zlib

    high = np.array(rgb)
    low = (high.astype(int) * 7 + 3) % 256
    rows = np.stack([high, low.astype(np.uint8)], -1).reshape(SIZE[1], -1)
    data = b"".join(b"\0" + row.tobytes() for row in rows)

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", *SIZE, 16, 2, 0, 0, 0))
        + chunk(b"iCCP", b"x\0\0" + zlib.compress(icc))
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def write_safetensors(path):
    header, at = {}, 0
    for name, values in sorted(expected.items()):
        header[name] = {"dtype": "U8", "shape": list(values.shape), "data_offsets": [at, at + values.size]}
        at += values.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    bodies = b"".join(np.ascontiguousarray(values).tobytes() for _, values in sorted(expected.items()))
    path.write_bytes(struct.pack("<Q", len(text)) + text + bodies)


adobe = matrix("wide, gamma 2.2", ADOBE, gamma(2.2))
p3 = matrix("display p3", P3, srgb_curve())
grey = profile(b"mntr", b"GRAY", b"XYZ ", "grey, gamma 1.8", {b"kTRC": gamma(1.8)})
rgb, rgba = picture(), picture()
rgba.putalpha(alpha())
put("adobe.jpg", rgb, "JPEG", adobe, quality=92)
put("p3_444.jpg", rgb, "JPEG", p3, quality=92, subsampling=0)
put("p3.png", rgb, "PNG", p3)
put("p3_alpha.png", rgba, "PNG", p3, convert(rgba, p3, "RGBA"))
palette = rgb.quantize(40)
put("p3_palette.png", palette, "PNG", p3, convert(palette.convert("RGB"), p3, "RGB"))
put("grey.jpg", rgb.convert("L"), "JPEG", grey, quality=92)
put("grey.png", rgb.convert("L"), "PNG", grey)
spread = convert(rgb.convert("L"), grey, "RGB")
spread.putalpha(alpha())
shaded = rgb.convert("L")
shaded.putalpha(alpha())
put("grey_alpha.png", shaded, "PNG", grey, spread)
put("ink.jpg", rgb.convert("CMYK"), "JPEG", ink(), quality=92)
put("p3.webp", rgb, "WEBP", p3, convert(rgb, p3, "RGB"), lossless=True)
put("p3_alpha.webp", rgba, "WEBP", p3, convert(rgba, p3, "RGBA"), lossless=True, exact=True)
expected["p3_deep.png/file"] = np.frombuffer(deep_png(rgb, p3), np.uint8)
expected["p3_deep.png/rgb"] = np.array(convert(rgb, p3, "RGB"))
put("srgb.png", rgb, "PNG", ImageCms.ImageCmsProfile(SRGB).tobytes(), rgb)
for name, icc in (("adobe", adobe), ("p3", p3), ("grey", grey), ("ink", ink())):
    expected[f"{name}/profile"] = np.frombuffer(icc, np.uint8)
write_safetensors(HERE / "colour_profiles.safetensors")
