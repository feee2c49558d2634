"""Data sets that tests make, and what several tests ask of them."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

import chiliad
import numpy as np  # before threads are counted: it has some of its own


def png(width, height, colour, noise=0):
    """A picture of one colour with a ramp, so that crops and flips show; noise: bytes that do not compress."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(
        b"\0" + b"".join(bytes(((colour[0] + x) % 256, (colour[1] + y) % 256, colour[2])) for x in range(width))
        for y in range(height)
    )
    extra = chunk(b"tEXt", b"Comment\0" + os.urandom(noise)) if noise else b""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_pictures(folder, count, sizes=((24, 24), (40, 20), (20, 40))):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        width, height = sizes[i % len(sizes)]
        colour = (i * 37 % 256, i * 91 % 256, i * 13 % 256)
        (folder / f"p{i:04d}.png").write_bytes(png(width, height, colour))
        (folder / f"p{i:04d}.txt").write_text(f"picture {i}" + " in many words" * (i % 5), encoding="utf-8")
    return folder


class DataTest(unittest.TestCase):
    """Each class has a folder `self.root` with pictures and their index."""

    COUNT = 48

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="chiliad-python-")
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pictures = write_pictures(cls.root / "pictures", cls.COUNT)
        cls.index = chiliad.build_index(cls.pictures, cls.root / "index")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def loader(self, **options):
        return chiliad.Loader(self.index, **{"batch": 8, "resolution": 16, **options})


def run_child(program, *arguments, timeout=60):
    """Runs a program of Python with these arguments; returns its finished process, with text."""
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "CHILIAD_LEAK_WARNINGS": "1"},
    )


def through_json(state):
    return json.loads(json.dumps(state))


def threads():
    return len(os.listdir("/proc/self/task"))


def become(count, most, seconds=20):
    """Whether count() gets down to `most`: a thread that was joined is listed a little longer."""
    end = time.monotonic() + seconds
    while count() > most and time.monotonic() < end:
        os.sched_yield()
    return count() <= most
