"""What comes out of a loader, in which order, and how an epoch ends."""

import json
import unittest

import chiliad
import kit
import numpy as np


class LoaderTest(kit.DataTest):
    def test_a_batch_holds_pixels_keys_and_captions(self):
        batch = next(iter(self.loader(order="sequential")))
        self.assertEqual(batch["pixels"].shape, (8, 16, 16, 3))
        self.assertEqual(batch["pixels"].dtype, np.uint8)
        self.assertEqual(batch["keys"][:2], ["p0000", "p0001"])
        self.assertEqual(batch["captions"][:2], ["picture 0", "picture 1 in many words"])
        self.assertEqual(batch["weight"].tolist(), [1.0] * 8)
        self.assertEqual([self.index.key(s) for s in batch["sample"]], batch["keys"])
        self.assertEqual((batch["step"], batch["epoch"], batch["num_items"]), (0, 0, 8))

    def test_pixels_are_those_of_the_picture(self):
        loader = self.loader(order="sequential", resolution=24)
        first = next(iter(loader))["pixels"][0].astype(int)  # 24 x 24: neither scaled nor cut
        y, x = np.mgrid[0:24, 0:24]
        self.assertTrue((first == np.stack([x, y, 0 * x], axis=2)).all())

    def test_an_epoch_shows_each_item_once(self):
        seen = [key for batch in self.loader() for key in batch["keys"]]
        self.assertEqual(sorted(seen), [f"p{i:04d}" for i in range(self.COUNT)])

    def test_epochs_follow_each_other_in_other_orders(self):
        loader = self.loader()
        first = [key for batch in loader for key in batch["keys"]]
        self.assertEqual(loader.epoch, 1)
        second = [key for batch in loader for key in batch["keys"]]
        self.assertEqual(sorted(first), sorted(second))
        self.assertNotEqual(first, second)

    def test_epochs_end_where_asked(self):
        loader = self.loader(epochs=2)
        self.assertEqual([len(list(loader)) for _ in range(4)], [6, 6, 0, 0])

    def test_an_ended_iterator_stays_ended(self):
        rows = iter(self.loader())
        for _ in rows:
            pass
        self.assertEqual(list(rows), [])

    def test_length_counts_micro_batches(self):
        loader = self.loader(bucket_step=8, bucket_min=8, bucket_max=32, micro_batch_items=3)
        self.assertEqual(len(loader), sum(1 for _ in loader))
        self.assertGreater(len(loader), loader.plan.num_steps)

    def test_buckets_keep_shapes(self):
        loader = self.loader(bucket_step=8, bucket_min=8, bucket_max=32)
        shapes = {batch["pixels"].shape[1:3] for batch in loader}
        self.assertEqual(shapes, {(16, 16), (8, 24), (24, 8)})

    def test_order_depends_on_nothing_but_the_plan(self):
        def run(**options):
            return [(b["step"], b["keys"], b["pixels"].tobytes()) for b in self.loader(flip=True, crop="random", **options)]

        slow = run(threads=1, prefetch_steps=1, prefetch_bytes=0)
        self.assertEqual(slow, run(threads=4, prefetch_steps=8, cache_bytes=1 << 20))
        self.assertNotEqual(slow, run(seed=2))

    def test_ranks_share_a_step(self):
        loaders = [self.loader(rank=rank, world_size=3) for rank in range(3)]
        for batches in zip(*loaders):
            self.assertEqual(len({batch["step"] for batch in batches}), 1)
            keys = [key for batch in batches for key in batch["keys"]]
            planned = [item.key for item in loaders[0].plan.items(batches[0]["step"])]
            self.assertEqual(sorted(keys), sorted(planned))

    def test_more_ranks_than_items_gives_empty_batches(self):
        loaders = [self.loader(batch=2, rank=rank, world_size=5, epochs=1) for rank in range(5)]
        counts = [[len(batch["keys"]) for batch in loader] for loader in loaders]
        self.assertEqual({len(count) for count in counts}, {24})
        self.assertEqual(sum(map(sum, counts)), self.COUNT)

    def test_pictures_alone(self):
        batch = next(iter(self.loader(languages=[])))
        self.assertEqual(batch["captions"], [""] * 8)

    def test_a_run_file_says_it_all(self):
        run = self.root / "run.yaml"
        run.write_text(
            f"version: 1\nmodel: {{patch: 8, text_max_tokens: 9}}\n"
            f"data: {{index: {self.root}/index, batch: 6, resolution: 16, order: sequential}}\n"
        )
        batch = next(iter(chiliad.Loader(run)))
        self.assertEqual(batch["captions"], [f"picture {i}" for i in range(6)])
        self.assertEqual(next(iter(chiliad.Loader(run, batch=4)))["num_items"], 4)

    def test_one_plan_serves_many_loaders(self):
        plan = chiliad.Plan(self.index, batch=8, resolution=16)
        self.assertEqual(len(chiliad.Loader(plan, world_size=2)), 6)
        with self.assertRaises(TypeError):
            chiliad.Loader(plan, batch=4)

    def test_seek_goes_anywhere(self):
        loader = self.loader()
        steps = [batch["keys"] for batch in loader]
        loader.seek(4)
        self.assertEqual([batch["keys"] for batch in loader], steps[4:])

    def test_documents_come_in_rows(self):
        texts = self.root / "texts"
        texts.mkdir()
        with open(texts / "t.jsonl", "w", encoding="utf-8") as file:
            for i in range(20):
                file.write(json.dumps({"text": f"document {i} " * (i + 1)}) + "\n")
        index = chiliad.build_index(texts, self.root / "texts.index")
        loader = chiliad.Loader(index, mode="pack", batch=5, sequence_length=64, micro_batch_tokens=128)
        seen = []
        for batch in loader:
            ends = batch["cu_seqlens"]
            self.assertEqual(ends[-1], len(batch["tokens"]))
            self.assertEqual(len(batch["keys"]), len(ends) - 1)
            self.assertLessEqual(len(batch["tokens"]), 128)
            within = np.setdiff1d(np.arange(len(batch["tokens"])), ends[1:] - 1)
            self.assertTrue((batch["targets"][within] == batch["tokens"][within + 1]).all())
            seen += batch["keys"]
        self.assertEqual(len(set(seen)), 20)
        self.assertEqual(len(seen), 20)

    def test_conversations_bring_all_their_pictures(self):
        talks = self.root / "talks"
        kit.write_pictures(talks, 3)
        records = [
            {
                "image": [f"p{(i + p) % 3:04d}.png" for p in range(i % 4)],
                "conversations": [{"from": "human", "value": "Look"}, {"from": "gpt", "value": f"I see {i}"}],
            }
            for i in range(12)
        ]
        (talks / "talks.json").write_text(json.dumps(records), encoding="utf-8")
        (talks / "mix.yaml").write_text("- {json_path: talks.json, sampling_strategy: \"first:11\"}\n", encoding="utf-8")
        index = chiliad.build_index(talks / "mix.yaml", self.root / "talks.index")
        self.assertEqual(len(index), 11)
        vision = {"vision.template": "chatml", "vision.side": 28, "vision.patch": 14}
        loader = chiliad.Loader(index, mode="pack", batch=5, sequence_length=512, micro_batch_tokens=512, **vision)
        seen = 0
        for batch in loader:
            seen += len(batch["keys"])
            tiles = 0
            for row, first, positions, first_tile, num_tiles in batch["pictures"]:
                self.assertEqual((positions, num_tiles), (4, 1))
                self.assertTrue((batch["tokens"][first : first + positions] == -200).all())
                self.assertTrue(batch["cu_seqlens"][row] <= first < batch["cu_seqlens"][row + 1])
                self.assertEqual(first_tile, tiles)
                tiles += num_tiles
            self.assertEqual(batch["tiles"].shape, (tiles, 28, 28, 3))
            self.assertEqual(tiles, sum((int(sample)) % 4 for sample in batch["sample"]))
        self.assertEqual(seen, 11)


class PlanTest(kit.DataTest):
    def test_the_report_counts_steps_and_balance(self):
        report = self.loader(world_size=4).plan_report()
        self.assertEqual((report["steps"], report["items"]), (6, self.COUNT))
        self.assertIn("balance", chiliad.Plan(self.index, resolution=16).table())

    def test_what_is_left_out_is_counted(self):
        (self.pictures / "lonely.png").write_bytes(kit.png(8, 8, (1, 2, 3)))
        index = chiliad.build_index(self.pictures, self.root / "index.lonely")
        (self.pictures / "lonely.png").unlink()
        coverage = chiliad.Plan(index, resolution=16).coverage
        self.assertEqual((coverage["no_caption"], coverage["in_order"]), (1, self.COUNT))

    def test_settings_are_a_run_file(self):
        yaml = self.root / "again.yaml"
        plan = chiliad.Plan(self.index, batch=8, resolution=16, flip=True, seed=5)
        yaml.write_text(plan.run_yaml())
        again = chiliad.Plan(yaml)
        self.assertEqual(again.items(3), plan.items(3))


class IndexTest(kit.DataTest):
    def test_an_index_says_what_it_holds(self):
        self.assertEqual(len(self.index), self.COUNT)
        self.assertEqual(self.index.layout, "image_text")
        self.assertEqual(self.index.key(1), "p0001")
        self.assertEqual(self.index.stats()["num_samples"], self.COUNT)
        with self.assertRaises(IndexError):
            self.index.key(self.COUNT)

    def test_progress_reports_bytes(self):
        calls = []
        chiliad.build_index(self.pictures, self.root / "index.new", progress=lambda *both: calls.append(both))
        self.assertTrue(all(0 <= done <= total for done, total in calls))

    def test_an_error_in_progress_ends_the_build(self):
        def fail(done, total):
            raise KeyError("stop")

        big = kit.write_pictures(self.root / "big", 3)
        for i in range(40):
            (big / f"n{i}.png").write_bytes(kit.png(4, 4, (0, 0, 0), noise=4_000_000))
        with self.assertRaises(KeyError):
            chiliad.build_index(big, self.root / "big.index", threads=1, progress=fail)
        self.assertEqual(len(chiliad.build_index(big, self.root / "big.index")), 43)


if __name__ == "__main__":
    unittest.main()
