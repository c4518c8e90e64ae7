// SPDX-License-Identifier: Apache-2.0
#pragma once
// Draws that samplers and augmentations share.
#include <cstdint>
#include <vector>

#include "vitrail/base/random.h"

namespace vitrail::data {

int64_t random_index(RandomStream& random, int64_t count);                // uniform in 0 … count − 1
double random_uniform(RandomStream& random, double low, double high);     // uniform in [low, high)
bool random_coin(RandomStream& random);                                   // probability 1/2
int64_t random_integer(RandomStream& random, int64_t low, int64_t high);  // uniform in low … high

// A uniformly drawn element.  A vector of one element consumes no draw.
template <class T>
T random_choice(RandomStream& random, const std::vector<T>& values) {
  return values.size() == 1 ? values[0] : values[random_index(random, static_cast<int64_t>(values.size()))];
}

}  // namespace vitrail::data
