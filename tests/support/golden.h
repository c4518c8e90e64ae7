// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the fixtures that tools/golden/ writes: tensors of a reference implementation, with their options as JSON.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::testing {

struct Golden {
  std::map<std::string, Tensor> tensors;
  std::string config;  // the JSON text under "config" in the file's metadata; empty when there is none

  // The tensor called `name`.  Throws std::runtime_error that lists the existing names.
  const Tensor& operator[](const std::string& name) const;
  bool has(const std::string& name) const { return tensors.count(name) != 0; }
};

// Reads a well-formed safetensors file (F64, F32, F16, BF16, I64, I32, I8, U8, BOOL).  It shares no code with
// vitrail/weights, so that the library's reader is not tested against itself.
Golden read_golden(const std::filesystem::path& path);

// Succeeds if every |got − want| ≤ atol + rtol·|want|.  Shapes must be equal; dtypes may differ (compared as double).
// NaN equals only NaN.  A failure reports the number of failing elements and the worst one: its index and both values.
::testing::AssertionResult close(const Tensor& got, const Tensor& want, double atol, double rtol = 0);

// Σ (got − want)² of two f32 tensors with the same number of elements.
double squared_error(const Tensor& got, const Tensor& want);
// √(Σ (got − want)² / Σ want²) of such tensors.
double relative_error(const Tensor& got, const Tensor& want);

}  // namespace vitrail::testing
