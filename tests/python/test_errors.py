"""Bad items by the rules of training, and errors that users reach."""

import unittest

import chiliad
import kit


class BadItemTest(kit.DataTest):
    COUNT = 120

    def setUp(self):
        self.path = self.pictures / "p0002.png"
        self.good = self.path.read_bytes()
        self.path.write_bytes(self.good[:-20] + b"x" * 20)

    def tearDown(self):
        self.path.write_bytes(self.good)

    def test_a_damaged_item_keeps_its_place_with_weight_0(self):
        batch = next(iter(self.loader(order="sequential")))
        self.assertEqual(batch["weight"].tolist(), [1, 1, 0, 1, 1, 1, 1, 1])
        self.assertEqual(batch["keys"][2], "p0002")
        self.assertFalse(batch["pixels"][2].any())
        self.assertTrue(batch["pixels"][3].any())
        self.assertEqual(batch["captions"][2], "")
        (row, reason), = batch["bad"]
        self.assertEqual(row, 2)
        self.assertRegex(reason, "p0002: p0002.png: checksum: expected")
        self.assertEqual(batch["num_items"], 8)  # as planned: no rank knows what another found

    def test_it_is_an_error_where_asked(self):
        rows = iter(self.loader(order="sequential", on_bad="raise"))
        with self.assertRaisesRegex(chiliad.CorruptDataError, 'checksum.* Set on_bad="mask" to go on') as caught:
            next(rows)
        self.assertEqual(caught.exception.place, "p0002")
        self.assertEqual(next(rows)["weight"][2], 0)  # who goes on all the same gets it with weight 0

    def test_the_run_file_decides_where_nothing_is_said(self):
        with self.assertRaises(chiliad.CorruptDataError):
            next(iter(self.loader(order="sequential", on_bad_item="stop")))

    def test_too_many_stop_the_run(self):
        loader = self.loader(max_bad_fraction=0.0)
        seen = 0
        with self.assertRaisesRegex(chiliad.CorruptDataError, "1 of .* items could not be used, more than"):
            for epoch in range(3):
                for batch in loader:
                    seen += len(batch["keys"])
        self.assertGreaterEqual(seen, 92)

    def test_a_journal_leaves_items_out(self):
        journal = self.root / "journal.jsonl"
        journal.write_text('{"from_step":0,"sample":5,"reason":"made up"}\n')
        options = dict(order="sequential", journal=journal)
        batch = next(iter(self.loader(**options)))
        self.assertEqual(batch["weight"][5], 0)
        self.assertEqual(batch["num_items"], 7)
        state = self.loader(**options).state_dict()
        with self.assertRaisesRegex(chiliad.InputError, "journal: was .*, is"):
            self.loader(order="sequential").load_state_dict(state)


class InputErrorTest(kit.DataTest):
    CASES = {
        "data.batch: expected a whole number": dict(batch=0),
        'data.bach: unknown key "bach" in section data. Did you mean batch?': dict(bach=4),
        "data.flip: expected true or false": dict(flip="often"),
        "data.bucket_step: expected a multiple of model.patch": {"bucket_step": 12, "model.patch": 8},
        "rank: expected 0 to 1 for world_size 2, got 2": dict(rank=2, world_size=2),
        "world_size: expected at least 1, got 0": dict(world_size=0),
        "threads: expected at least 1, got 0": dict(threads=0),
        "epochs: expected at least 0, got -1": dict(epochs=-1),
        "on_bad: expected mask or raise, got 'skip'": dict(on_bad="skip"),
        "data.limit: expected a bool, number, text, path or list, got dict": dict(limit={}),
        "data: no item is left of 48 in the index": dict(max_aspect_error=1e-9, bucket_min=16, bucket_max=16, bucket_step=16, limit=1, resolution=16, languages=["zz"]),
    }

    def test_texts_say_what_is_wrong(self):
        for text, options in self.CASES.items():
            with self.subTest(text):
                try:
                    self.loader(**options)
                except chiliad.InputError as error:
                    self.assertIn(text, str(error))
                    self.assertIsInstance(error, ValueError)
                else:
                    self.assertTrue("no item" in text, "nothing was raised")

    def test_what_is_no_index_is_named(self):
        with self.assertRaisesRegex(chiliad.InputError, "nowhere: expected a run file, got no such file"):
            chiliad.Loader(self.root / "nowhere")
        with self.assertRaises(chiliad.InputError):
            chiliad.build_index(self.root / "nowhere", self.root / "nowhere.index")

    def test_a_damaged_index_is_corrupt_data(self):
        folder = self.root / "damaged"
        chiliad.build_index(self.pictures, folder)
        sidecar = next((folder / "shards").glob("*.chidx"))
        data = bytearray(sidecar.read_bytes())
        data[len(data) // 2] ^= 1
        sidecar.write_bytes(bytes(data))
        with self.assertRaises(chiliad.CorruptDataError):
            chiliad.Index(folder)

    def test_steps_outside_are_refused(self):
        with self.assertRaisesRegex(chiliad.InputError, "step: expected 0 to 6, got 7"):
            self.loader(epochs=1).seek(7)


if __name__ == "__main__":
    unittest.main()
