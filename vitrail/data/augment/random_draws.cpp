// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/random_draws_internal.h"

#include <algorithm>

namespace vitrail::data {

int64_t random_index(RandomStream& random, int64_t count) {
  return std::min(static_cast<int64_t>(random.uniform() * static_cast<double>(count)), count - 1);
}

double random_uniform(RandomStream& random, double low, double high) { return low + (high - low) * random.uniform(); }

bool random_coin(RandomStream& random) { return (random.bits() & 1) != 0; }

int64_t random_integer(RandomStream& random, int64_t low, int64_t high) {
  return low + random_index(random, high - low + 1);
}

}  // namespace vitrail::data
