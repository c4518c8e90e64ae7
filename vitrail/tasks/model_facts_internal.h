// SPDX-License-Identifier: Apache-2.0
#pragma once
// The facts that lists of models show (LoadedModel::facts()).
#include <array>
#include <string>

#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::tasks {

struct ModelFacts {
  std::string architecture;
  std::array<int64_t, 2> image_size;  // height, width
  // Of the Vision Transformer; depth 0: these five are left out.
  int64_t depth = 0, heads = 0, dim = 0, classes = 0;
  bool texts = false;
  bool segments = false;
  kernels::Precision precision = kernels::Precision::fp32;
};

std::string facts_json(const ModelFacts& facts);

}  // namespace vitrail::tasks
