#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layering check catches what it is for, and nothing else: it runs on small trees made here."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402

TABLE = """
| folder | what lives there | may include | libraries |
| --- | --- | --- | --- |
| `vitrail/base/` | basics | – | zlib, omp |
| `vitrail/tensor/` | tensors | base | – |
| `vitrail/kernels/isa/` | instruction sets | base | hwy, intrinsics |
| `vitrail/kernels/rowwise/` | loops | base, kernels/isa | hwy |
| `vitrail/ops/` | operations | base, tensor, kernels | – |
| `vitrail/nn/` | layers | base, tensor, kernels/rowwise/activation.h | – |
| `vitrail/nn/experimental/` | new layers | nn, tensor | fmt |
| `vitrail/vitrail.h` | the umbrella header | nn, tensor | – |
| `apps/vitrail/` | the program | everything | fmt |
| `tests/` | tests | everything | gtest |
| `fuzz/` | fuzzing | everything | – |
| `examples/` | examples | everything | – |
"""


def violations(path, code):
    return [message for _, message in check_layers.check_file(check_layers.Table(TABLE), path, code)]


class Includes(unittest.TestCase):
    def assert_fine(self, path, code):
        self.assertEqual(violations(path, code), [])

    def assert_caught(self, path, code, word):
        found = violations(path, code)
        self.assertEqual(len(found), 1, found)
        self.assertIn(word, found[0])

    def test_allowed_layers_pass(self):
        self.assert_fine("vitrail/nn/block.cpp", '#include "vitrail/nn/block.h"\n#include "vitrail/tensor/tensor.h"\n')
        self.assert_fine("apps/vitrail/main.cpp", '#include <fmt/core.h>\n#include "vitrail/nn/block.h"\n')
        self.assert_fine("tests/nn/block_test.cpp", '#include "tests/support/paths.h"\n#include <gtest/gtest.h>\n')

    def test_layer_that_the_row_does_not_name_is_caught(self):
        self.assert_caught(
            "vitrail/kernels/rowwise/softmax.cpp", '#include "vitrail/tensor/tensor.h"', "does not name tensor"
        )
        self.assert_caught("vitrail/base/zip.cpp", '#include "vitrail/nn/block.h"', "does not name nn")

    def test_single_header_is_allowed_without_its_neighbours(self):
        self.assert_fine("vitrail/nn/mlp.h", '#include "vitrail/kernels/rowwise/activation.h"')
        self.assert_caught("vitrail/nn/mlp.h", '#include "vitrail/kernels/isa/isa.h"', "does not name kernels/isa")

    def test_innermost_folder_decides_and_a_parent_stands_for_its_subfolders(self):
        self.assert_fine("vitrail/kernels/rowwise/softmax.cpp", '#include "vitrail/kernels/isa/isa.h"')
        softmax = '#include "vitrail/kernels/rowwise/softmax.h"'
        self.assert_caught("vitrail/kernels/isa/isa.cpp", softmax, "does not name kernels/rowwise")
        self.assert_fine("vitrail/ops/softmax.cpp", '#include "vitrail/kernels/rowwise/softmax.h"')
        self.assert_caught("vitrail/kernels/a.cpp", "int x;", "no row")

    def test_spelling_does_not_hide_an_include(self):
        self.assert_caught("vitrail/kernels/isa/a.cpp", '  #  include   "vitrail/tensor/tensor.h" // why', "tensor")
        self.assert_caught("vitrail/kernels/isa/a.cpp", '#include/**/"vitrail/tensor/tensor.h"', "tensor")
        self.assert_caught("vitrail/kernels/isa/a.cpp", "#include SOME_MACRO", "cannot be checked")
        self.assert_caught("vitrail/nn/a.cpp", '#include "../kernels/linear.h"', "not a path from the repository root")

    def test_include_in_a_comment_is_none(self):
        self.assert_fine("vitrail/base/a.cpp", '// #include "vitrail/nn/block.h"\n/*\n#include <fmt/core.h>\n*/\n')

    def test_library_belongs_to_its_row(self):
        self.assert_fine("vitrail/base/zip.cpp", "#include <zlib.h>\n#include <omp.h>\n#include <sys/mman.h>\n")
        self.assert_caught("vitrail/nn/a.cpp", "#include <omp.h>", "does not name omp")
        self.assert_caught("vitrail/nn/a.cpp", '#include "hwy/highway.h"', "does not name hwy")
        self.assert_caught("vitrail/nn/a.cpp", "#include <immintrin.h>", "does not name intrinsics")
        self.assert_caught("vitrail/nn/a.cpp", "#include <fmt/core.h>", "does not name fmt")

    def test_unknown_library_is_caught(self):
        self.assert_caught("vitrail/nn/a.cpp", "#include <eigen3/Eigen/Dense>", "neither standard nor in a row")
        self.assert_caught("vitrail/nn/a.cpp", "#include <sqlite3.h>", "neither standard nor in a row")

    def test_public_header_includes_no_library_and_no_internal_header(self):
        self.assert_caught("vitrail/kernels/isa/simd.h", "#include <hwy/highway.h>", "public header")
        self.assert_caught("vitrail/kernels/isa/simd.h", '#include "vitrail/kernels/isa/gelu-inl.h"', "internal")
        self.assert_fine("vitrail/kernels/isa/gelu-inl.h", "#include <hwy/highway.h>")
        self.assert_fine("vitrail/kernels/isa/cpu_internal.h", "#include <immintrin.h>")

    def test_folder_without_a_row_is_caught(self):
        self.assert_caught("vitrail/misc/a.cpp", "int x;", "no row")

    def test_subfolder_without_a_row_belongs_to_its_parent(self):
        self.assert_fine("vitrail/base/detail/a.cpp", '#include <zlib.h>\n#include "vitrail/base/npy.h"\n')
        self.assert_caught("vitrail/base/detail/a.cpp", '#include "vitrail/nn/block.h"', "does not name nn")
        self.assert_fine("vitrail/nn/a.cpp", '#include "vitrail/base/detail/random.h"')

    def test_row_of_a_subfolder_replaces_that_of_its_parent(self):
        self.assert_fine("vitrail/nn/experimental/a.cpp", '#include <fmt/core.h>\n#include "vitrail/nn/block.h"\n')
        self.assert_caught("vitrail/nn/experimental/a.cpp", '#include "vitrail/base/npy.h"', "does not name base")
        self.assert_caught("vitrail/nn/a.cpp", '#include "vitrail/nn/experimental/a.h"', "not name nn/experimental")

    def test_file_may_have_a_row_of_its_own(self):
        self.assert_fine("vitrail/vitrail.h", '#include "vitrail/nn/block.h"')
        self.assert_caught("vitrail/vitrail.h", '#include "vitrail/base/npy.h"', "does not name base")
        self.assert_caught("vitrail/other.h", "int x;", "no row")
        self.assert_caught("vitrail/nn/a.cpp", '#include "vitrail/vitrail.h"', "does not name vitrail.h")

    def test_library_does_not_include_program_or_tests(self):
        self.assert_caught("vitrail/nn/a.cpp", '#include "apps/vitrail/options.h"', "not part of the library")
        self.assert_fine("fuzz/fuzz_a.cpp", '#include "tests/support/paths.h"')
        self.assert_fine("examples/a.cpp", '#include "apps/vitrail/program.h"')
        self.assert_fine("tests/apps/a.cpp", '#include "apps/vitrail/program.h"\n#include "examples/a.h"')
        self.assert_caught("apps/vitrail/a.cpp", '#include "examples/a.h"', "not part of the library")


class Silence(unittest.TestCase):
    def test_printing_and_exiting_are_caught(self):
        for code in (
            "std::cout << 1;",
            "std::cerr << 1;",
            'printf("x");',
            "std::fprintf(stderr, x);",
            "exit(1);",
            "std::exit(1);",
            "abort();",
            "::_exit(0);",
            "perror(x);",
            "#include <iostream>",
        ):
            self.assertEqual(len(violations("vitrail/nn/a.cpp", code)), 1, code)

    def test_other_words_are_not(self):
        code = 'std::snprintf(b, 9, "exit(1)");  // printf(x)\nreturn on_exit(x) + stream.exit() + "std::cout";\n'
        self.assertEqual(violations("vitrail/nn/a.cpp", code), [])
        self.assertEqual(violations("vitrail/nn/b.cpp", "char c = '\"'; int n = 1'000; // std::cout"), [])
        self.assertEqual(violations("apps/vitrail/a.cpp", 'fmt::print("x"); exit(2);'), [])

    def test_line_numbers_are_those_of_the_file(self):
        code = '/* one\n two */\nint x;\nstd::cout << R"(a\nb)";\n#include <fmt/core.h>\n'
        found = check_layers.check_file(check_layers.Table(TABLE), "vitrail/nn/a.cpp", code)
        self.assertEqual([line for line, _ in found], [4, 6])


class Rows(unittest.TestCase):
    def test_circle_unknown_folder_and_unknown_library_are_caught(self):
        def problems(old, new):
            return check_layers.Table(TABLE.replace(old, new)).problems

        self.assertEqual(problems("", ""), [])
        self.assertIn("circle", problems("basics | –", "basics | tensor")[0])
        self.assertIn("circle", problems("layers | base", "layers | nn/experimental, base")[0])
        self.assertIn("no row", problems("tensors | base", "tensors | bass")[0])
        self.assertIn("unknown", problems("zlib, omp", "zlip")[0])
        self.assertIn("circle", problems("instruction sets | base", "instruction sets | kernels")[0])
        self.assertIn("no row", problems("base, kernels/isa |", "base, kernels/gemm |")[0])
        self.assertIn("no row", problems("kernels/rowwise/activation.h", "kernels/gemm/linear.h")[0])
        self.assertIn("a folder that it is in", problems("tensor, kernels |", "tensor, kernels, kernels/isa |")[0])
        self.assertIn("two rows", problems("| `vitrail/ops/`", "| `vitrail/nn/`")[0])
        self.assertIn("not found", check_layers.Table("# no table").problems[0])

    def test_this_repository_is_in_order(self):
        lines, files = check_layers.check_tree(ROOT)
        self.assertEqual(lines, [])
        self.assertGreater(files, 30)


if __name__ == "__main__":
    unittest.main()
