// SPDX-License-Identifier: Apache-2.0
#pragma once
// Disjoint sets of indices, each named by its smallest member (union-find with path halving).
#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <vector>

namespace vitrail::analysis {

class DisjointSets {
 public:
  explicit DisjointSets(size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), size_t{0}); }

  size_t first_of(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void join(size_t i, size_t j) {
    const auto [low, high] = std::minmax({first_of(i), first_of(j)});  // copies
    parents_[high] = low;
  }
  // The sets with several members, each ascending, in the order of their first ones.
  std::vector<std::vector<size_t>> several() {
    std::map<size_t, std::vector<size_t>> members;
    for (size_t i = 0; i < parents_.size(); ++i) {
      if (first_of(i) != i) members[first_of(i)].push_back(i);
    }
    std::vector<std::vector<size_t>> sets;
    for (auto& [first, others] : members) {
      others.insert(others.begin(), first);
      sets.push_back(std::move(others));
    }
    return sets;
  }

 private:
  std::vector<size_t> parents_;
};

}  // namespace vitrail::analysis
