// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the examples: functions that print tensors and check their shapes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "vitrail/tensor/tensor.h"

namespace show {

inline int mismatches = 0;  // the exit status of an example: the number of failed checks

// Prints "tokens               [1, 196, 768]" and checks the shape.
inline void shape(const std::string& name, const vitrail::Tensor& tensor, const vitrail::Shape& expected) {
  const bool same = tensor.shape() == expected;
  std::printf("%-34s %s%s\n", name.c_str(), tensor.shape().to_string().c_str(),
              same ? "" : ("  but expected " + expected.to_string()).c_str());
  mismatches += !same;
}

// Prints at most 3 × 5 values of the last two axes, at index 0 of all other axes.
inline void values(const std::string& name, vitrail::Tensor tensor) {
  while (tensor.rank() > 2) tensor = tensor.select(0, 0);
  if (tensor.rank() == 1) tensor = tensor.unsqueeze(0);
  std::printf("%s\n", name.c_str());
  for (int64_t row = 0; row < std::min<int64_t>(3, tensor.size(0)); ++row) {
    for (int64_t column = 0; column < std::min<int64_t>(5, tensor.size(1)); ++column) {
      std::printf(" %9.4f", tensor.select(0, row).select(0, column).item<double>());
    }
    std::printf("%s\n", tensor.size(1) > 5 ? "  …" : "");
  }
}

// Prints whether a claim about the values holds.
inline void check(const std::string& claim, bool holds) {
  std::printf("%-70s %s\n", claim.c_str(), holds ? "yes" : "NO");
  mismatches += !holds;
}

}  // namespace show
