"""Writes image_ops.safetensors: what Pillow and transformers make of the pictures in ../images/files.

    python make_image_ops.py      (pillow 13.0.0, transformers 5.24.0, torch 2.15.0, safetensors 0.8.0)
"""

import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from safetensors.torch import save_file
from transformers import CLIPImageProcessorPil, LlavaNextImageProcessorPil, SiglipImageProcessorPil
from transformers.image_processing_utils import select_best_resolution

HERE = Path(__file__).parent
FILES = HERE.parent / "images" / "files"
SIDE, TILE = 24, 16
CLIP_MEAN = (122, 116, 104)
expected = {}


def put(name, pixels):
    expected[name] = torch.from_numpy(np.ascontiguousarray(pixels))


def rgb(name):
    return ImageOps.exif_transpose(Image.open(FILES / name)).convert("RGB")


def enhance():
    picture = rgb("photo.png").resize((32, 20))
    put("enhance/source", picture)
    for kind in ("Brightness", "Contrast", "Color"):
        for factor in (0.0, 0.4, 0.95, 1.3, 1.9):
            put(f"enhance/{kind}/{factor}", getattr(ImageEnhance, kind)(picture).enhance(factor))


def draft():
    """JPEGs of odd sizes, decoded at a scale and resized with the box that draft returns."""
    for width, height, sampling in ((203, 149, 2), (97, 160, 1), (161, 90, 0)):
        name = f"draft/{width}x{height}"
        y, x = np.mgrid[0:height, 0:width]
        waves = [127 + 100 * np.sin(x / (7 + 3 * c) + y / (11 - 2 * c)) for c in range(3)]
        pixels = np.clip(np.stack(waves, -1), 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=90, subsampling=sampling)
        expected[name + "/file"] = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
        for size in ((20, 17), (33, 29), (45, 40)):
            picture = Image.open(io.BytesIO(file.getvalue()))
            _, box = picture.draft("RGB", size)
            put(f"{name}/{size[0]}x{size[1]}", picture.resize(size, Image.Resampling.BICUBIC, box=box))
            expected[f"{name}/{size[0]}x{size[1]}/scaled_size"] = torch.tensor(picture.size)


def pad_to_square(picture):
    side = max(picture.size)
    canvas = Image.new("RGB", (side, side), CLIP_MEAN)
    canvas.paste(picture, ((side - picture.size[0]) // 2, (side - picture.size[1]) // 2))
    return canvas


def encoders():
    clip = CLIPImageProcessorPil(size={"shortest_edge": SIDE + 4}, crop_size={"height": SIDE, "width": SIDE})
    siglip = SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE}, resample=Image.Resampling.BICUBIC)
    choices = [[TILE, 2 * TILE], [2 * TILE, TILE], [2 * TILE, 2 * TILE], [3 * TILE, TILE], [TILE, 3 * TILE]]
    tiles = LlavaNextImageProcessorPil(
        size={"shortest_edge": TILE},
        crop_size={"height": TILE, "width": TILE},
        image_grid_pinpoints=choices,
        do_rescale=False,
        do_normalize=False,
    )
    expected["tiles/choices_hw"] = torch.tensor(choices)
    for name in ("photo.png", "exif_6.jpg", "jpeg_420.jpg", "narrow_3xN.png", "very_wide.png"):
        picture = rgb(name)
        for kind, processor in (("clip", clip), ("siglip", siglip)):
            made = np.array(processor(picture, return_tensors="np")["pixel_values"][0], dtype=np.float32)
            put(f"{kind}/{name}", made)
        if max(picture.size) < 120:
            put(f"square/{name}", pad_to_square(picture))
        made = np.array(tiles(picture, return_tensors="np")["pixel_values"][0])
        put(f"tiles/{name}", np.moveaxis(made, 1, -1).astype(np.uint8))
        expected[f"best_hw/{name}"] = torch.tensor(select_best_resolution(picture.size[::-1], choices))


enhance()
draft()
encoders()
save_file(expected, HERE / "image_ops.safetensors")
