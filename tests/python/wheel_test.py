# SPDX-License-Identifier: Apache-2.0
"""An installed wheel: nothing but NumPy is needed, and it is fast to start.   Run by scripts/wheel_check."""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import vitrail

ROOT = pathlib.Path(__file__).resolve().parents[2]
PHOTO = ROOT / "examples" / "photographs" / "chelsea.png"

FIRST_RESULT = """
import time
began = time.perf_counter()
import vitrail
vitrail.load("imagenet-tiny").classify({photo!r}, top=1)
print(time.perf_counter() - began)
"""


def python(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Wheel(unittest.TestCase):
    def test_the_package_is_the_installed_one(self):
        self.assertNotIn(str(ROOT / "python"), vitrail.__file__)
        self.assertEqual(importlib.metadata.version("vitrail"), vitrail.__version__)
        self.assertEqual(importlib.metadata.requires("vitrail"), ["numpy"])

    def test_import_and_first_result_of_the_bundled_model_take_at_most_200_ms(self):
        seconds = sorted(float(python(FIRST_RESULT.format(photo=str(PHOTO)))) for _ in range(9))
        print(f"import and first result: {seconds[0] * 1e3:.0f} ms, median {seconds[4] * 1e3:.0f} ms")
        if os.getloadavg()[0] > os.cpu_count():
            self.skipTest("other programs use the processor")
        self.assertLessEqual(seconds[0], 0.2)

    def test_the_program_is_a_module_and_a_script(self):
        with tempfile.TemporaryDirectory() as folder:
            for command in ([sys.executable, "-m", "vitrail"], [pathlib.Path(sys.executable).parent / "vitrail"]):
                run = subprocess.run([*command, "classify", PHOTO], cwd=folder, capture_output=True, text=True)
                self.assertIn("cat", run.stdout.splitlines()[1], run.stderr)

    def test_no_openmp_is_loaded(self):
        maps = python("import vitrail; vitrail.load('imagenet-tiny'); print(open('/proc/self/maps').read())")
        self.assertIn("libvitrail", maps)
        # NumPy's OpenBLAS has threads of its own, and no OpenMP either.
        self.assertFalse(re.findall(r"lib(?:gomp|iomp5|omp)[-.\w]*\.so", maps))

    def test_a_model_of_the_hub_is_looked_for_in_the_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            code = f"import os; os.environ.update(HF_HUB_OFFLINE='1', HF_HUB_CACHE={folder!r}); import vitrail\n"
            out = python(code + "try: vitrail.load('org/name')\nexcept vitrail.Error as error: print(error)")
            self.assertIn("HF_HUB_OFFLINE is set", out)


if __name__ == "__main__":
    unittest.main()
