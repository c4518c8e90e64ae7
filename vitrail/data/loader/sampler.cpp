// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/sampler_internal.h"

#include <utility>

#include "vitrail/base/round_up_internal.h"
#include "vitrail/data/augment/random_draws_internal.h"

namespace vitrail::data {

std::vector<int64_t> epoch_order(std::vector<int64_t> samples, bool shuffle, uint64_t seed, int64_t epoch) {
  if (!shuffle) return samples;
  RandomStream random(random_key("order", seed, static_cast<uint64_t>(epoch)));
  for (int64_t i = static_cast<int64_t>(samples.size()) - 1; i > 0; --i) {  // Fisher–Yates
    std::swap(samples[i], samples[random_index(random, i + 1)]);
  }
  return samples;
}

std::vector<int64_t> balanced_order(const std::vector<std::vector<int64_t>>& classes, int64_t size, uint64_t seed,
                                    int64_t epoch) {
  const auto count = static_cast<int64_t>(classes.size());
  const int64_t quota_limit = ceil_div(size, count);  // samples of a class in an epoch
  std::vector<int64_t> samples;
  for (int64_t c = 0; c < count; ++c) {
    // The classes with one sample more change from epoch to epoch.
    const int64_t quota = size / count + ((c + epoch) % count < size % count ? 1 : 0);
    const std::vector<int64_t>& members = classes[static_cast<size_t>(c)];
    const auto members_count = static_cast<int64_t>(members.size());
    std::vector<int64_t> pass;
    int64_t pass_index = -1;
    for (int64_t i = epoch * quota_limit; i < epoch * quota_limit + quota; ++i) {
      if (i / members_count != pass_index) {
        pass_index = i / members_count;
        pass = epoch_order(members, true, random_key("class", seed, static_cast<uint64_t>(c)), pass_index);
      }
      samples.push_back(pass[static_cast<size_t>(i % members_count)]);
    }
  }
  return epoch_order(std::move(samples), true, seed, epoch);
}

}  // namespace vitrail::data
