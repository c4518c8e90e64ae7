// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the examples share: printing a tensor, and checking that its shape is what the text says.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "vitrail/tensor/tensor.h"

namespace show {

inline int mismatches = 0;  // an example returns this: non-zero when a shape is not as announced

// "tokens               [1, 196, 768]"
inline void shape(const std::string& name, const vitrail::Tensor& tensor, const vitrail::Shape& expected) {
  const bool same = tensor.shape() == expected;
  std::printf("%-34s %s%s\n", name.c_str(), tensor.shape().to_string().c_str(),
              same ? "" : ("  but expected " + expected.to_string()).c_str());
  mismatches += !same;
}

// The first rows and columns (at most 3 × 5) of the last two axes; of earlier axes the first.
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

// A statement about the numbers.
inline void check(const std::string& claim, bool holds) {
  std::printf("%-70s %s\n", claim.c_str(), holds ? "yes" : "NO");
  mismatches += !holds;
}

}  // namespace show
