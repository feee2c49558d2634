"""Cells of an interactive session: run, interrupted, run again."""

import code
import gc
import os
import pathlib
import signal
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import kit

CELLS = pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch/cells.py"


class Session:
    """Runs cells as a notebook does: errors are shown, names stay."""

    def __init__(self):
        self.names = {}
        self.interpreter = code.InteractiveInterpreter(self.names)
        self.shown = ""

    def run(self, cell):
        """Returns what the cell printed, errors too."""
        out = StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            try:
                self.interpreter.runcode(compile(cell, "<cell>", "exec"))
            except KeyboardInterrupt:
                self.interpreter.showtraceback()
        self.shown = out.getvalue()
        return self.shown


class CellsTest(kit.DataTest):
    def setUp(self):
        self.session = Session()
        self.session.run("import chiliad, signal")
        self.session.names["index"] = self.index
        before = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def test_an_interrupted_cell_goes_on(self):
        self.session.run("loader, seen = chiliad.Loader(index, batch=8, resolution=16), []")
        cell = (
            "for batch in loader:\n"
            "    seen.append(batch['step'])\n"
            "    if batch['step'] in (1, 3): signal.raise_signal(signal.SIGINT)\n"
        )
        self.assertIn("KeyboardInterrupt", self.session.run(cell))
        self.assertIn("KeyboardInterrupt", self.session.run(cell))
        self.assertEqual(self.session.run(cell), "")
        self.assertEqual(self.session.names["seen"], list(range(6)))

    def test_a_loader_may_be_made_again_and_again(self):
        before = kit.threads()
        for _ in range(10):
            self.session.run("loader = chiliad.Loader(index, batch=8, resolution=16)")
            shown = self.session.run("for batch in loader:\n    raise ValueError('look')")
            self.assertIn("ValueError: look", shown)
        self.assertTrue(kit.become(kit.threads, before + 9))  # of one loader, not of ten
        self.session.run("del loader, batch; import sys; sys.last_value = sys.last_traceback = None")
        gc.collect()
        self.assertTrue(kit.become(kit.threads, before))


@unittest.skipUnless(os.path.isdir("/usr/share/tuxpaint/stamps"), "no pictures of tuxpaint-stamps-default")
class ExampleTest(unittest.TestCase):
    def test_the_cells_run(self):
        session = Session()
        cells = CELLS.read_text(encoding="utf-8").split("# %%")
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for cell in cells[1:]:
                    self.assertNotIn("Traceback", session.run("#" + cell), cell)
                session.names.clear()
                gc.collect()
            finally:
                os.chdir(here)


if __name__ == "__main__":
    unittest.main()
