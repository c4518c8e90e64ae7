// SPDX-License-Identifier: Apache-2.0
#pragma once
// Computes the outputs of ONNX files in double, operator by operator, slowly.  It has the operators and attributes that
// the exports write, and shares no code with vitrail.
#include <map>
#include <string>
#include <vector>

#include "tests/support/onnx_file.h"

namespace vitrail::testing {

struct OnnxArray {
  std::vector<int64_t> shape;
  std::vector<double> values;
  bool integer = false;  // i64, whose division is one of integers
};

// The values of all outputs by name.  Throws std::runtime_error for an operator that is not known and for shapes that
// do not fit.
std::map<std::string, OnnxArray> run_onnx(const OnnxFile& file, const std::map<std::string, OnnxArray>& inputs);

}  // namespace vitrail::testing
