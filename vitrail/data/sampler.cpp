// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/sampler_internal.h"

#include <utility>

#include "vitrail/data/random_draws_internal.h"

namespace vitrail::data {

std::vector<int64_t> epoch_order(std::vector<int64_t> samples, bool shuffle, uint64_t seed, int64_t epoch) {
  if (!shuffle) return samples;
  RandomStream random(random_key("order", seed, static_cast<uint64_t>(epoch)));
  for (int64_t i = static_cast<int64_t>(samples.size()) - 1; i > 0; --i) {  // Fisher–Yates
    std::swap(samples[i], samples[random_index(random, i + 1)]);
  }
  return samples;
}

}  // namespace vitrail::data
