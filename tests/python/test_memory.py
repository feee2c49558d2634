"""Batches own their memory; loaders may be left, collected and closed at any time."""

import gc
import os
import unittest
import weakref

import chiliad
import kit
import numpy as np


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class MemoryTest(kit.DataTest):
    def test_arrays_are_no_copies(self):
        loader = self.loader()
        batch = next(iter(loader))
        self.assertFalse(batch["pixels"].flags.owndata)
        self.assertTrue(batch["pixels"].flags.writeable)
        self.assertEqual(batch["pixels"].ctypes.data % 64, 0)

    def test_a_batch_outlives_the_next_ones_and_the_loader(self):
        loader = self.loader(prefetch_steps=1)
        rows = iter(loader)
        pixels = next(rows)["pixels"]
        before = pixels.copy()
        for _ in rows:
            pass
        loader.close()
        del loader, rows
        gc.collect()
        self.assertTrue((pixels == before).all())

    def test_a_view_keeps_the_batch(self):
        loader = self.loader()
        row = next(iter(loader))["pixels"][3, ::2]
        self.assertEqual(loader.stats()["held_batches"], 1)
        del row
        self.assertEqual(loader.stats()["held_batches"], 0)
        self.assertEqual(loader.stats()["held_bytes"], 0)

    def test_numpy_takes_it_by_dlpack(self):
        loader = self.loader()
        pixels = next(iter(loader))["pixels"]
        taken = np.from_dlpack(pixels)
        self.assertEqual(taken.ctypes.data, pixels.ctypes.data)
        before = pixels.copy()
        del pixels
        self.assertEqual(loader.stats()["held_batches"], 1)
        self.assertTrue((taken == before).all())

    def test_hoarding_is_an_error_and_no_hang(self):
        loader = self.loader(held_bytes=20_000)  # a batch has 6 KB of pixels and 2 of tokens
        kept = []
        with self.assertRaisesRegex(chiliad.InputError, r"held_bytes: 3 batches .* expected at most .* copy") as caught:
            for batch in loader:
                kept.append(batch)
        self.assertEqual(caught.exception.place, "chiliad.Loader")
        self.assertEqual(len(kept), 3)
        del batch
        kept.clear()
        gc.collect()
        self.assertEqual(next(iter(loader))["step"], 3)  # nothing was lost

    def test_two_batches_are_always_allowed(self):
        loader = self.loader(held_bytes=0, epochs=1)
        self.assertEqual(sum(len(batch["keys"]) for batch in loader), self.COUNT)

    def test_left_loaders_leave_no_threads(self):
        before = kit.threads()
        for _ in range(20):
            for _ in self.loader(threads=3):
                break
        gc.collect()
        self.assertTrue(kit.become(kit.threads, before))

    def test_an_error_in_the_loop_leaves_no_threads(self):
        before = kit.threads()
        for _ in range(5):
            with self.assertRaises(ZeroDivisionError):
                for _ in self.loader():
                    _ = 1 / 0
        gc.collect()
        self.assertTrue(kit.become(kit.threads, before))

    def test_cycles_are_collected(self):
        loader = self.loader()
        next(iter(loader))
        loader.itself = loader
        gone = weakref.ref(loader)
        before = kit.threads()
        del loader
        gc.collect()
        self.assertIsNone(gone())
        self.assertTrue(kit.become(kit.threads, before - 1))

    def test_memory_is_flat(self):
        def rounds(count):
            for _ in range(count):
                for batch in self.loader(resolution=256, epochs=1, prefetch_steps=2):
                    batch["pixels"][0, 0, 0, 0] = 1

        rounds(3)
        before = resident_bytes()
        rounds(10)
        self.assertLess(resident_bytes() - before, 12 << 20)  # a batch is 1.5 MB, an epoch 9

    def test_a_closed_loader_says_so(self):
        with self.loader() as loader:
            next(iter(loader))
        with self.assertRaisesRegex(chiliad.InputError, "is closed. Make a new one"):
            next(iter(loader))
        loader.close()


if __name__ == "__main__":
    unittest.main()
