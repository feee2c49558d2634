"""Stop anywhere, go on with another number of ranks: the same items, each once an epoch."""

import random
import unittest

import chiliad
import kit


def items_of(batch):
    """What an item is, bit by bit."""
    captions = batch["captions"]
    return [
        (int(batch["sample"][i]), int(batch["draw_key"][i]), captions[i], batch["pixels"][i].tobytes())
        for i in range(len(captions))
    ]


class Ranks:
    """All ranks of a job, in one process. Each has its own threads and knows nothing of the others."""

    def __init__(self, plan, world_size, state=None):
        self.loaders = [
            chiliad.Loader(plan, rank=rank, world_size=world_size, threads=1, prefetch_steps=2)
            for rank in range(world_size)
        ]
        for loader in self.loaders:
            if state is not None:
                loader.load_state_dict(state)

    def run(self, end_step):
        """Steps up to end_step, as {step: sorted items}."""
        steps = {}
        for loader in self.loaders:
            while loader.next_step < end_step:
                for batch in loader:
                    steps.setdefault(batch["step"], []).extend(items_of(batch))
                    if loader.next_step >= end_step:
                        break
        return {step: sorted(items) for step, items in steps.items()}

    def state(self):
        states = [loader.state_dict() for loader in self.loaders]
        assert all(state == states[0] for state in states), states
        return kit.through_json(states[0])

    def close(self):
        for loader in self.loaders:
            loader.close()


class ResumeTest(kit.DataTest):
    COUNT = 101  # no multiple of anything

    OPTIONS = dict(
        batch=12, resolution=16, bucket_step=8, bucket_min=8, bucket_max=32, micro_batch_items=4, flip=True, crop="random"
    )

    def setUp(self):
        self.plan = chiliad.Plan(self.index, **self.OPTIONS)

    def reference(self, steps):
        ranks = Ranks(self.plan, 1)
        wanted = ranks.run(steps)
        ranks.close()
        return wanted

    def test_eight_ranks_go_on_as_any_number(self):
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        epoch = self.plan.num_steps
        end = 2 * epoch
        wanted = self.reference(end)
        for others in (1, 2, 3, 5, 16):
            stop = rng.randrange(1, end)
            with self.subTest(seed=seed, others=others, stop=stop):
                first = Ranks(self.plan, 8)
                got = first.run(stop)
                state = first.state()
                first.close()
                self.assertEqual(state["next_step"], stop)
                second = Ranks(self.plan, others, state)
                got.update(second.run(end))
                second.close()
                self.assertEqual(got, wanted)
                for e in range(2):
                    samples = [item[0] for step in range(e * epoch, (e + 1) * epoch) for item in got[step]]
                    self.assertEqual(sorted(samples), sorted(set(samples)))
                    self.assertEqual(len(samples), self.plan.num_items)

    def test_many_changes_of_ranks(self):
        rng = random.Random(7)
        end = self.plan.num_steps + 3
        got, state, at = {}, None, 0
        while at < end:
            at = min(end, at + rng.randrange(1, 5))
            ranks = Ranks(self.plan, rng.choice((1, 2, 3, 4, 7)), state)
            got.update(ranks.run(at))
            state = ranks.state()
            ranks.close()
        self.assertEqual(got, self.reference(end))

    def test_a_state_at_every_batch_loses_nothing(self):
        loader = chiliad.Loader(self.plan)
        batches = [(batch["step"], items_of(batch), kit.through_json(loader.state_dict())) for batch in loader]
        again = chiliad.Loader(self.plan)
        for number, (step, _, state) in enumerate(batches):
            again.load_state_dict(state)
            whole = number + 1 == len(batches) or batches[number + 1][0] != step
            self.assertEqual(state["next_step"], step + 1 if whole else step)
            following = next(iter(again))
            wanted = [items for at, items, _ in batches if at == state["next_step"]]
            if wanted:
                self.assertEqual(items_of(following), wanted[0])
            else:
                self.assertEqual(following["epoch"], 1)

    def test_a_break_loses_and_repeats_nothing(self):
        loader = chiliad.Loader(self.plan)
        got = []
        while loader.epoch == 0:
            for batch in loader:
                got.append(items_of(batch))
                if len(got) % 3 == 0:
                    break
        self.assertEqual(got, [items_of(batch) for batch in chiliad.Loader(self.plan, epochs=1)])

    def test_another_data_set_is_refused(self):
        state = chiliad.Loader(self.plan).state_dict()
        other = kit.write_pictures(self.root / "other", 20)
        loader = chiliad.Loader(chiliad.build_index(other, self.root / "other.index"), **self.OPTIONS)
        with self.assertRaisesRegex(chiliad.InputError, "resume: the order of items would differ: data.index"):
            loader.load_state_dict(state)

    def test_other_settings_are_refused_by_name(self):
        state = chiliad.Loader(self.plan).state_dict()
        loader = chiliad.Loader(self.index, **{**self.OPTIONS, "seed": 9})
        with self.assertRaisesRegex(chiliad.InputError, "run.seed: was 1, is 9"):
            loader.load_state_dict(state)

    def test_what_is_no_state_is_refused(self):
        loader = chiliad.Loader(self.plan)
        with self.assertRaisesRegex(chiliad.CorruptDataError, "expected a cursor as JSON"):
            loader.load_state_dict({"step": 3})


if __name__ == "__main__":
    unittest.main()
