# SPDX-License-Identifier: Apache-2.0
"""tools/check_hardening.py accepts files with all flags and names the flag of each missing property."""

import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_hardening  # noqa: E402

PROGRAM = """
#include <cstdio>
#include <cstring>
#include <vector>
int main(int count, char** arguments) {
  char text[64];
  std::strcpy(text, arguments[0]);
  const std::vector<int> values(3, count);
  std::printf("%s %d", text, values[count]);
}
"""
FLAGS = (
    "-O2 -fPIE -pie -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS "
    "-Wl,-z,relro -Wl,-z,now"
).split()
# A module that calls none of the checked functions.
MODULE = "".join(f'extern "C" int function_{i}(int x) {{ return x + {i}; }}\n' for i in range(4))
WITHOUT = {
    "-pie": ["-no-pie"],
    "-Wl,-z,relro": ["-Wl,-z,norelro"],
    "-Wl,-z,now": ["-Wl,-z,lazy"],
    "-Wl,-z,noexecstack": ["-Wl,-z,execstack"],
    "-fstack-protector-strong": ["-fno-stack-protector"],
    "-D_FORTIFY_SOURCE=2": ["-U_FORTIFY_SOURCE"],
    "-D_GLIBCXX_ASSERTIONS": ["-U_GLIBCXX_ASSERTIONS"],
}
if platform.machine() == "x86_64":
    FLAGS.append("-fcf-protection")
    WITHOUT["-fcf-protection"] = ["-fcf-protection=none"]


class CheckHardeningTest(unittest.TestCase):
    def missing(self, flags, name="program", source=PROGRAM):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / name
            subprocess.run(["g++", "-x", "c++", "-", "-o", program, *flags], input=source.encode(), check=True)
            return check_hardening.missing_properties(program)

    def test_all_flags_are_accepted(self):
        self.assertEqual(self.missing(FLAGS), [])

    def test_each_missing_property_is_named(self):
        for flag, without in WITHOUT.items():
            missing = self.missing(FLAGS + without)
            self.assertEqual([flag in entry for entry in missing], [True], f"{flag}: {missing}")

    def test_modules_lack_signs_of_functions_that_they_do_not_have(self):
        flags = [flag for flag in FLAGS if flag not in ("-fPIE", "-pie")] + ["-fPIC", "-shared"]
        for name, expected in {"vitrail_curl.so": 0, "vitrail_mpi.so": 1, "vitrail_serve.so": 3}.items():
            missing = self.missing(flags, name, MODULE)
            self.assertEqual(len(missing), expected, f"{name}: {missing}")
        lazy = self.missing([*flags, "-Wl,-z,lazy", "-Wl,-z,norelro"], "vitrail_curl.so", MODULE)
        self.assertEqual(len(lazy), 2, lazy)


if __name__ == "__main__":
    unittest.main()
