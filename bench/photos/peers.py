"""PyTorch's DataLoader over loose files, decoding with Pillow, Pillow's draft, and torchvision: CPU-seconds per 1,000 pictures.

    python peers.py FOLDER NUM_PICTURES        2 workers, batches of 64, short side 256 bicubic, centre crop
"""

import io
import json
import os
import resource
import sys

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

SIDE = 256
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)


def cpu_seconds():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def with_pillow(data, draft=False):
    picture = Image.open(io.BytesIO(data))
    if draft:
        picture.draft("RGB", (SIDE, SIDE))
    if picture.mode != "RGB":
        picture = picture.convert("RGB")
    width, height = picture.size
    scale = SIDE / min(width, height)
    full = max(SIDE, int(width * scale + 0.5)), max(SIDE, int(height * scale + 0.5))
    left, top = (full[0] - SIDE) // 2, (full[1] - SIDE) // 2
    picture = picture.resize(full, Image.Resampling.BICUBIC).crop((left, top, left + SIDE, top + SIDE))
    return torch.from_numpy(np.array(picture))


def with_draft(data):
    return with_pillow(data, draft=True)


def with_torchvision(data):
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import functional

    pixels = decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB)
    pixels = functional.resize(pixels, [SIDE], interpolation=InterpolationMode.BICUBIC, antialias=True)
    return functional.center_crop(pixels, [SIDE, SIDE])


class Files(Dataset):
    def __init__(self, folder, count, load):
        names = sorted(name for name in os.listdir(folder) if name.endswith(".jpg"))
        self.paths = [os.path.join(folder, name) for name in names[:count]]
        self.load = load

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb") as file, open(self.paths[i][:-3] + "txt", encoding="utf8") as caption:
            return self.load(file.read()), caption.read()


def collate(samples):
    return torch.stack([pixels for pixels, _ in samples]), [caption for _, caption in samples]


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    peers = {"pillow": with_pillow, "pillow_draft": with_draft}
    try:
        import torchvision  # noqa: F401

        peers["torchvision"] = with_torchvision
    except ImportError:
        print("peers.py: no torchvision here", file=sys.stderr)
    for name, load in peers.items():
        start = cpu_seconds()
        for _ in DataLoader(Files(folder, count, load), batch_size=64, num_workers=2, shuffle=True, collate_fn=collate):
            pass
        value = round(1000 * (cpu_seconds() - start) / count, 3)
        line = {"bench": "photos", "metric": f"peer_{name}", "value": value, "unit": "CPU-s/1000 pictures", "target": None, "ok": None}
        print(json.dumps(line, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
