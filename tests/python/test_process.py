"""Interrupts, forks, threads, and the end of the interpreter."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest

import chiliad
import kit


def stall(path):
    """Reads of this file wait for a writer from now on."""
    os.rename(path, f"{path}.away")
    os.mkfifo(path)


def release(path):
    """Puts the file back and lets those go who wait."""
    writer = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    os.rename(f"{path}.away", path)
    os.close(writer)


STALLED = """
import os, sys
import chiliad
index, path = sys.argv[1:]
loader = chiliad.Loader(index, batch=8, resolution=16, order="sequential", threads=1)
rows = iter(loader)
try:
    next(rows)
except KeyboardInterrupt:
    print("interrupted", flush=True)
{then}
"""

GO_ON = """
writer = os.open(path, os.O_RDWR | os.O_NONBLOCK)
os.rename(path + ".away", path)
os.close(writer)
print(next(rows)["keys"][0])
"""


class ProcessTest(kit.DataTest):
    def interrupt(self, then, timeout):
        """Runs STALLED, interrupts it while it waits for a picture; returns (exit code, output, errors)."""
        path = self.pictures / "p0000.png"
        stall(path)
        child = subprocess.Popen(
            [sys.executable, "-c", STALLED.format(then=then), str(self.index.folder), str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Programs of a shell's background ignore the interrupt, and what they start inherits that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        try:
            os.close(os.open(path, os.O_WRONLY))  # returns once its thread reads; that tries again
            child.send_signal(signal.SIGINT)
            out, errors = child.communicate(timeout=timeout)
            return child.returncode, out, errors
        finally:
            child.kill()
            child.wait()
            if os.path.exists(f"{path}.away"):
                release(path)

    def test_ctrl_c_ends_a_wait_and_the_next_call_goes_on(self):
        code, out, errors = self.interrupt(GO_ON, timeout=60)
        self.assertEqual((code, out.split(), errors), (0, ["interrupted", "p0000"], ""))

    def test_a_read_that_hangs_does_not_hang_the_exit(self):
        code, out, errors = self.interrupt("", timeout=60)
        self.assertEqual((code, out.split()), (0, ["interrupted"]))
        self.assertIn("does not come back from its storage", errors)

    def test_storage_that_is_back_is_used(self):
        path = self.pictures / "p0000.png"
        loader = self.loader(order="sequential", read_deadline=0.2)
        stall(path)
        try:
            rows = iter(loader)
            threading.Timer(0.5, release, [path]).start()
            with self.assertRaisesRegex(chiliad.UnavailableError, "step 0: storage did not answer within 0.2 s"):
                next(rows)
        finally:
            while os.path.exists(f"{path}.away"):
                threading.Event().wait(0.01)
        self.assertEqual(next(rows)["keys"][0], "p0000")

    def test_a_missing_file_is_unavailable_until_it_is_back(self):
        path = self.pictures / "p0000.png"
        path.rename(f"{path}.away")
        loader = self.loader(order="sequential")
        try:
            with self.assertRaisesRegex(chiliad.UnavailableError, "p0000.png: data changed since it was indexed"):
                next(iter(loader))
        finally:
            os.rename(f"{path}.away", path)
        self.assertEqual(next(iter(loader))["keys"][0], "p0000")

    def test_a_fork_is_refused(self):
        loader = self.loader()
        batch = next(iter(loader))
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                next(iter(loader))
            except chiliad.InputError as error:
                os.write(write, str(error).encode())
                del batch, loader  # collecting it there neither waits nor fails
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        with os.fdopen(read) as file:
            text = file.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertRegex(text, "made in process .* a fork of it.* num_workers=0")
        self.assertEqual(next(iter(loader))["step"], 1)

    def test_a_loader_cannot_be_pickled(self):
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(self.loader())

    def test_threads_share_a_loader(self):
        loader = self.loader(batch=1, epochs=1)
        rows, seen, lock = iter(loader), [], threading.Lock()

        def work():
            for batch in rows:
                with lock:
                    seen.extend(batch["keys"])

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(sorted(seen), [f"p{i:04d}" for i in range(self.COUNT)])

    def test_the_gil_is_free_during_a_wait(self):
        path = self.pictures / "p0000.png"
        loader = self.loader(order="sequential")
        stall(path)
        timer = threading.Timer(0.1, release, [path])  # runs Python, or nobody would release the picture
        timer.start()
        self.assertEqual(next(iter(loader))["keys"][0], "p0000")

    ENDS = {
        "a loader that waits": "rows = iter(loader); next(rows)",
        "a batch that outlives it": "batch = next(iter(loader)); del loader",
        "a view in a module": "sys.pixels = next(iter(loader))['pixels'][1:]",
        "sys.exit in the loop": "for batch in loader: sys.exit(0)",
        "a cycle": "loader.itself = loader; next(iter(loader))",
        "a thread that is left": (
            "import threading; threading.Thread(target=lambda: [0 for e in range(10**6) for b in loader], daemon=True).start()"
        ),
    }

    def test_the_interpreter_may_end_at_any_time(self):
        program = "import sys, chiliad\nloader = chiliad.Loader(sys.argv[1], batch=8, resolution=16)\n"
        for what, end in self.ENDS.items():
            with self.subTest(what):
                done = kit.run_child(program + end, self.index.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("Error", done.stderr)
                self.assertNotIn("terminate", done.stderr)

    def test_an_error_in_the_loop_is_the_only_output(self):
        program = "import sys, chiliad\nfor batch in chiliad.Loader(sys.argv[1], resolution=16): 1 / 0"
        done = kit.run_child(program, self.index.folder)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.rstrip().endswith("ZeroDivisionError: division by zero"), done.stderr)


if __name__ == "__main__":
    unittest.main()
