#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of benchmarks/turns.py, with short programs in the place of peers."""

import importlib
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
turns = importlib.import_module("turns")


def program(text):
    return [sys.executable, "-c", "import os, sys, time\n" + text]


PEER = program("print('ready', flush=True); sys.stdin.readline(); print(os.getpid(), sys.argv[1:], time.time())")


class Turns(unittest.TestCase):
    def test_peers_wait_for_their_line_and_all_programs_end(self):
        results = turns.run({"a": PEER, "b": PEER}, {"c": program("print('end')")}, 0.05, 60)
        self.assertEqual(list(results), ["a", "b", "c"])
        for name in ("a", "b"):
            status, output, _ = results[name]
            self.assertEqual(status, 0)
            self.assertRegex(output, r"^ready\n\d+ \['wait'\] ")
        self.assertEqual(results["c"], (0, "end\n", ""))

    def test_a_peer_that_ends_early_or_is_never_ready_fails(self):
        failing = program("sys.exit('no such model')")
        never = program("time.sleep(600)")
        results = turns.run({"failing": failing, "never": never, "a": PEER}, {}, 0.05, 5)
        self.assertEqual(results["failing"][::2], (1, "no such model\n"))
        self.assertNotEqual(results["never"][0], 0)
        self.assertEqual(results["never"][2], "not ready after 5 s")
        self.assertEqual(results["a"][0], 0)


if __name__ == "__main__":
    unittest.main()
