// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which sample stands where in an epoch, and which places are a rank's; inside vitrail/data only.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace vitrail::data {

// The samples in the order of the epoch: a permutation drawn by (seed, epoch), or as they are.
std::vector<int64_t> epoch_order(std::vector<int64_t> samples, bool shuffle, uint64_t seed, int64_t epoch);

// A rank's part of a step of `total` places, all ranks counted: the pairs (p, total − 1 − p) with p from first_pair on,
// and for the last rank the one in the middle of an odd total.  Locally a rank numbers its places so that the partner
// of place i is size() − 1 − i again.
struct StepShare {
  int64_t total = 0, first_pair = 0, pairs = 0;
  bool middle = false;

  int64_t size() const { return 2 * pairs + (middle ? 1 : 0); }
  // The place in the step of the local place i.
  int64_t place(int64_t i) const {
    if (middle && i == pairs) return total / 2;
    return i < pairs ? first_pair + i : total - 1 - (first_pair + size() - 1 - i);
  }
};

inline StepShare share_of(int64_t total, int rank, int ranks) {
  const int64_t pairs = total / 2, first = pairs * rank / ranks, last = pairs * (rank + 1) / ranks;
  return {total, first, last - first, total % 2 != 0 && rank == ranks - 1};
}

}  // namespace vitrail::data
