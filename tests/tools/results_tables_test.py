#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/results_tables.py: each writes a small tree of records and pages, and runs the tool on it."""

import argparse
import contextlib
import importlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "benchmarks")]
results_tables, peers, peer_records = map(importlib.import_module, ("results_tables", "peers", "peer_records"))

INFERENCE = {
    "kind": "inference",
    "processor": "Test CPU",
    "cores": 2,
    "versions": {"vitrail": "0.1.0", "torch": None},
    "command": "benchmarks/peers.py --rounds 2",
    "unit": "ms per batch",
    "notes": ["A note."],
    "rows": [
        {
            "model": "vit_tiny_patch16_224",
            "batch": 1,
            "precision": "fp32",
            "vitrail": 10.0,
            "peers": {"onnxruntime": 15.0, "openvino": 12.0},
            "speedup": 1.2,
            "speedup_median": 1.25,
        },
        {
            "model": "vit_tiny_patch16_224",
            "batch": 1,
            "precision": "int8",
            "vitrail": 5.0,
            "peers": {"onnxruntime": 9.0},
            "speedup": 1.8,
        },
    ],
}
ACCURACY = {
    "kind": "table",
    "processor": "Test CPU",
    "cores": 2,
    "versions": {"vitrail": None},
    "command": "vitrail eval",
    "unit": "percent",
    "columns": {"model": "{model}", "fp32": "{fp32} ({top5})"},
    "rows": [{"model": "small", "fp32": 91.5}],
}
PAGE = "# Speed\n\n<!-- results:test -->\n<!-- /results:test -->\nText after the table.\n"
CARD = """---
model-index:
    - type: accuracy
      value: 1
---
<!-- results:accuracy-cifar10 -->
<!-- /results:accuracy-cifar10 -->
"""


class ResultsTables(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.page = self.write("docs/performance.md", PAGE)
        self.write_record("test", INFERENCE)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def write_record(self, name, record):
        self.write(f"benchmarks/results/{name}.json", json.dumps(record))

    def run_tool(self, *options):
        """(exit status, standard error)"""
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            status = results_tables.main([str(self.root), *options])
        return status, errors.getvalue()

    def assert_error(self, *words):
        for options in ([], ["--check"]):
            status, message = self.run_tool(*options)
            self.assertEqual(status, 1)
            for word in words:
                self.assertIn(word, message)

    def test_written_page_passes_the_check_and_keeps_its_prose(self):
        self.assertEqual(self.run_tool()[0], 0)
        text = self.page.read_text()
        self.assertTrue(text.startswith("# Speed\n\n<!-- results:test -->\nTest CPU, 2 cores; vitrail 0.1.0, other"))
        self.assertIn("Command: `benchmarks/peers.py --rounds 2`", text)
        self.assertIn("| ViT-Ti/16, 1 | 10.0: 1.20 (1.25) OpenVINO | 5.0: 1.80 ONNX Runtime |", text)
        self.assertTrue(text.endswith("A note.\n<!-- /results:test -->\nText after the table.\n"))
        self.assertEqual(self.run_tool("--check"), (0, ""))

    def test_empty_block_fails_the_check_which_writes_nothing(self):
        self.assertEqual(self.run_tool("--check")[0], 1)
        self.assertEqual(self.page.read_text(), PAGE)

    def test_changed_cell_of_the_page_is_caught(self):
        self.run_tool()
        self.page.write_text(self.page.read_text().replace("| 10.0: ", "| 9.0: "))
        status, message = self.run_tool("--check")
        self.assertEqual(status, 1)
        self.assertIn("docs/performance.md:8: differs", message)
        self.assertIn("| 9.0: ", message)
        self.assertIn("| 10.0: ", message)
        self.assertIn("run tools/results_tables.py", message)

    def test_changed_record_is_caught(self):
        self.run_tool()
        self.write_record("test", INFERENCE | {"processor": "Another CPU"})
        self.assertIn("Another CPU", self.run_tool("--check")[1])

    def test_summary_of_the_readme_has_every_processor(self):
        readme = self.write("README.md", "<!-- results:readme -->\n<!-- /results:readme -->\n")
        faster = [row | {"vitrail": 5.0, "speedup": 2.4} for row in INFERENCE["rows"][:1]]
        self.write_record("other", INFERENCE | {"processor": "Other CPU", "rows": faster})
        self.run_tool()
        self.assertIn("Time of the fastest peer (ONNX Runtime, OpenVINO) over", readme.read_text())
        self.assertIn("| Test CPU, 2 cores | 1.20 (1.20 to 1.20) | 1.80 (1.80 to 1.80) |", readme.read_text())
        self.assertIn("| Other CPU, 2 cores | 2.40 (2.40 to 2.40) | not run |", readme.read_text())

    def test_column_without_any_value_is_left_out(self):
        record = ACCURACY | {"columns": ACCURACY["columns"] | {"share": "{share}"}}
        self.write_record("test", record)
        self.run_tool()
        self.assertIn("| model | fp32 |\n", self.page.read_text())
        self.write_record("test", record | {"rows": [*record["rows"], {"model": "large", "fp32": 95, "share": 80}]})
        self.run_tool()
        self.assertIn("| model | fp32 | share |\n", self.page.read_text())
        self.assertIn("| small | 91.5 |  |\n| large | 95 | 80 |\n", self.page.read_text())

    def test_accuracy_of_a_model_card_is_written_and_checked(self):
        self.write_record("accuracy-cifar10", ACCURACY)
        card = self.write("models/small/README.md", CARD)
        self.run_tool()
        self.assertIn("      value: 91.5\n---", card.read_text())
        self.assertIn("| small | 91.5 |", card.read_text())
        card.write_text(card.read_text().replace("value: 91.5", "value: 95"))
        self.assertIn("models/small/README.md:4: differs", self.run_tool("--check")[1])

    def test_speedup_that_does_not_follow_from_the_times_is_refused(self):
        rows = [INFERENCE["rows"][0] | {"speedup": 1.3}]
        self.write_record("test", INFERENCE | {"rows": rows})
        self.assert_error("test.json", "vit_tiny_patch16_224 batch 1 fp32", "speedup 1.3", "1.200")

    def test_incomplete_record_is_refused(self):
        self.write_record("test", {key: value for key, value in INFERENCE.items() if key != "command"})
        self.assert_error("test.json", "'command'")
        self.write_record("test", INFERENCE | {"rows": [{"model": "a", "batch": 1, "precision": "fp32"}]})
        self.assert_error("test.json", "'peers'")
        self.write_record("test", INFERENCE | {"kind": "speed"})
        self.assert_error("test.json", "kind 'speed'")
        self.write_record("test", INFERENCE | {"notes": "one text"})
        self.assert_error("test.json", "'notes' is no list")
        self.write("benchmarks/results/test.json", "{")
        self.assert_error("test.json", "not JSON")

    def test_wrong_markers_are_refused(self):
        for page, word in (
            ("<!-- results:none -->\n<!-- /results:none -->\n", "no record none.json"),
            ("<!-- results:test -->\n", "not closed"),
            ("<!-- /results:test -->\n", "unexpected"),
            ("<!-- results:test -->\n<!-- /results:other -->\n", "unexpected"),
            ("<!-- results:test -->\n<!-- results:test -->\n<!-- /results:test -->\n", "unexpected"),
        ):
            self.page.write_text(page)
            self.assert_error("docs/performance.md", word)

    def test_records_of_the_peer_benchmark_give_tables(self):
        def cell(is_training, **times):
            cell = peers.Cell("vit_tiny_patch16_224", 8, "half", is_training)
            cell.runs = {
                program: [{"min_ms": ms, "median_ms": 1.1 * ms, "peak_rss_mb": 100.4, "gflop_per_s": 90}]
                for program, ms in times.items()
            }
            return cell

        inference = [cell(False, vitrail=10.04, compiled=13.0, openvino=12.0), cell(False, vitrail=10.0)]
        training = [cell(True, vitrail=100.4, train=210.0, checkpointed=130.0)]
        options = argparse.Namespace(
            record=("test", "Test CPU"),
            program=sys.executable,
            interpreters=argparse.Namespace(of=lambda _: sys.executable),
            rounds=2,
            seconds=1.5,
            patience=100,
            only=["b8"],
            peers=None,
            alternate=0,
        )
        peer_records.write(inference, training, options, self.root / "benchmarks" / "results")
        names = ("inference-test", "training-test")
        self.page.write_text("".join(f"<!-- results:{name} -->\n<!-- /results:{name} -->\n" for name in names))
        self.assertEqual(self.run_tool()[0], 0)
        text = self.page.read_text()
        command = "`benchmarks/peers.py --rounds 2 --seconds 1.5 --patience 100 --only b8`"
        self.assertEqual(" ".join(text.split()).count(command), 2)
        self.assertIn("| ViT-Ti/16, 8 | 10.0: 1.20 (1.20) OpenVINO |", text)
        self.assertIn("| ViT-Ti/16 | 8 | half | 100 | 210 | 2.09 (2.09) | 100 | 100 | 1.29 times, 100 MB |", text)

    def test_this_repository_is_in_order(self):
        for path, (text, rendered) in results_tables.render_pages(ROOT).items():
            self.assertEqual(text, rendered, path)


if __name__ == "__main__":
    unittest.main()
