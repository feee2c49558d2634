"""The package's own types, its stubs, and a user's program under them."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import chiliad

PROGRAM = """
import chiliad

index: chiliad.Index = chiliad.build_index("a", out="b", progress=lambda done, total: None)
loader = chiliad.Loader(index, rank=0, world_size=2, batch=64, languages=["en"], flip=True)
for batch in loader:
    batch["pixels"].mean()
state: dict[str, object] = loader.state_dict()
steps: int = len(loader) + loader.plan.num_steps
wrong: int = loader.plan.table()
loader.seek("3")
"""


def check(*arguments):
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


class TypesTest(unittest.TestCase):
    def test_the_package_has_no_type_errors(self):
        done = check(str(pathlib.Path(chiliad.__file__).parent))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_errors_in_a_program_are_found(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(PROGRAM)
            file.flush()
            done = check(file.name)
        lines = [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]
        self.assertEqual(lines, ["10", "11"], done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
