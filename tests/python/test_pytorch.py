"""The example of a plain PyTorch script, in the Python that PEER_PYTHON names."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import chiliad
import kit

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch/train.py"
PYTHON = os.environ.get("PEER_PYTHON", "")


def environment():
    """That Python's own packages, and ours."""
    package = str(pathlib.Path(chiliad.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@unittest.skipUnless(PYTHON, "PEER_PYTHON names no Python with torch")
class PytorchTest(kit.DataTest):
    COUNT = 60

    def setUp(self):
        self.temporary_run = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary_run.cleanup)

    def train(self, checkpoint, *arguments, processes=1):
        """Losses by step."""
        launch = [PYTHON]
        if processes > 1:
            launch += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [*launch, str(EXAMPLE), "--index", self.index.folder, "--batch", "8", "--resolution", "16"]
        command += ["--checkpoint", os.path.join(self.temporary_run.name, checkpoint), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) loss (\S+)", done.stdout)}

    def test_two_processes_go_on_where_one_stopped(self):
        whole = self.train("whole.pt")
        self.assertEqual(sorted(whole), list(range(len(whole))))
        self.assertLess(whole[max(whole)], whole[0])
        parts = self.train("parts.pt", "--stop-after", "5")
        self.assertEqual(sorted(parts), list(range(5)))
        parts.update(self.train("parts.pt", processes=2))
        self.assertEqual(sorted(parts), sorted(whole))
        for step, loss in whole.items():
            self.assertAlmostEqual(parts[step], loss, delta=2e-5 * loss)  # sums in another order

    def test_a_tensor_keeps_its_batch(self):
        program = (
            "import sys, torch, chiliad\n"
            "loader = chiliad.Loader(sys.argv[1], batch=8, resolution=16)\n"
            "tensor = torch.from_dlpack(next(iter(loader))['pixels'])\n"
            "before = tensor.clone()\n"
            "assert loader.stats()['held_batches'] == 1\n"
            "for batch in loader: pass\n"
            "del batch\n"
            "assert loader.stats()['held_batches'] == 1 and torch.equal(tensor, before)\n"
            "del tensor\n"
            "assert loader.stats()['held_batches'] == 0\n"
        )
        done = subprocess.run(
            [PYTHON, "-c", program, self.index.folder], capture_output=True, text=True, timeout=120, env=environment()
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
