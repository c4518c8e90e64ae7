#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of benchmarks/alternate.py, with short programs as peers."""

import importlib
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
alternate = importlib.import_module("alternate")


def program(text):
    return [sys.executable, "-c", "import sys, time\n" + text]


PEER = program("print('ready', flush=True); sys.stdin.readline(); print(sys.argv[1:])")


class Alternate(unittest.TestCase):
    def test_peers_wait_for_a_line_and_all_programs_end(self):
        results = alternate.run({"a": PEER, "b": PEER}, {"c": program("print('end')")}, 0.05, 60)
        self.assertEqual(list(results), ["a", "b", "c"])
        for name in ("a", "b"):
            self.assertEqual(results[name], (0, "ready\n['wait']\n", ""))
        self.assertEqual(results["c"], (0, "end\n", ""))

    def test_a_peer_that_ends_early_or_is_never_ready_fails(self):
        failing = program("sys.exit('no such model')")
        never = program("time.sleep(600)")
        results = alternate.run({"failing": failing, "never": never, "a": PEER}, {}, 0.05, 5)
        self.assertEqual(results["failing"][::2], (1, "no such model\n"))
        self.assertNotEqual(results["never"][0], 0)
        self.assertEqual(results["never"][2], "not ready after 5 s")
        self.assertEqual(results["a"][0], 0)


if __name__ == "__main__":
    unittest.main()
