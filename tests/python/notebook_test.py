# SPDX-License-Identifier: Apache-2.0
"""The example notebook, executed, and its results.   Run by scripts/python_check."""

import os
import pathlib
import unittest

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "python" / "notebook.ipynb"
MAX_BYTES = 20_000


class Notebook(unittest.TestCase):
    def test_all_cells_run_and_show_their_results(self):
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": NOTEBOOK.parent}})
        client.execute()
        results = [
            output["data"]
            for cell in notebook.cells
            for output in cell.get("outputs", [])
            if output["output_type"] == "execute_result"
        ]
        html = [result["text/html"] for result in results if "text/html" in result]
        self.assertEqual(["imagenet-tiny" in html[0], "cat" in html[1]], [True, True])
        self.assertEqual(["<img" in page for page in html[2:]], [True, True])
        texts = [result["text/plain"] for result in results]
        self.assertTrue(any(text.startswith("[Match(name='150, 0'") for text in texts), texts)
        self.assertIn("(192, 3, 16, 16)", texts)

    def test_no_outputs_are_stored(self):
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbformat.validate(notebook)
        self.assertFalse([cell for cell in notebook.cells if cell.get("outputs")])
        self.assertLess(os.path.getsize(NOTEBOOK), MAX_BYTES)


if __name__ == "__main__":
    unittest.main()
