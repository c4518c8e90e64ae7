// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order of an epoch's samples, and the part of each batch that belongs to a rank.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace vitrail::data {

// The samples in the order of the epoch: a permutation keyed by (seed, epoch), or unchanged.
std::vector<int64_t> epoch_order(std::vector<int64_t> samples, bool shuffle, uint64_t seed, int64_t epoch);

// An epoch of `size` samples that has equally many of each class, in random order.  classes: the samples of each class,
// none of them empty.  A class goes through a permutation of its samples before one is shown again, also across epochs.
std::vector<int64_t> balanced_order(const std::vector<std::vector<int64_t>>& classes, int64_t size, uint64_t seed,
                                    int64_t epoch);

// The positions of one rank in a global batch of `total` images (of all ranks).  Mixup combines position p with
// total − 1 − p, so a rank holds such pairs: those with p in [first_pair, first_pair + pairs), and the last rank also
// the middle position of an odd total.  The rank's local indices keep the symmetry: the partner of i is size() − 1 − i.
struct RankSlice {
  int64_t total = 0, first_pair = 0, pairs = 0;
  bool has_middle = false;

  int64_t size() const { return 2 * pairs + (has_middle ? 1 : 0); }
  // The position in the global batch of the local index i.
  int64_t position(int64_t i) const {
    if (has_middle && i == pairs) return total / 2;
    return i < pairs ? first_pair + i : total - 1 - (first_pair + size() - 1 - i);
  }
};

inline RankSlice rank_slice(int64_t total, int rank, int ranks) {
  const int64_t pairs = total / 2, first = pairs * rank / ranks, last = pairs * (rank + 1) / ranks;
  return {total, first, last - first, total % 2 != 0 && rank == ranks - 1};
}

}  // namespace vitrail::data
