// SPDX-License-Identifier: Apache-2.0
#pragma once
// The shapes of a checkpoint, from which its configuration is read.
#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/tensor/shape.h"

namespace vitrail::models {

inline constexpr int64_t kMaxSamExtent = 1
                                         << 16;  // above any published model; products of three extents do not overflow

class SamShapes {
 public:
  SamShapes(const std::map<std::string, Shape>& shapes, std::string where)
      : shapes_(shapes), where_(std::move(where)) {}

  // Sets `extent` to an axis of a tensor, if there is one of this rank.
  void read(int64_t& extent, const std::string& name, int rank, int axis) const {
    const auto found = shapes_.find(name);
    if (found == shapes_.end() || found->second.rank() != rank) return;
    extent = found->second[axis];
    if (extent < 1 || extent > kMaxSamExtent) {
      throw Error(where_, str(name, " with extents from 1 to ", kMaxSamExtent), found->second.to_string());
    }
  }
  bool has(const std::string& name) const { return shapes_.contains(name); }
  bool has_prefix(const std::string& prefix) const {
    const auto at = shapes_.lower_bound(prefix);
    return at != shapes_.end() && at->first.starts_with(prefix);
  }
  // One more than the largest N of the names "<prefix>N.…".
  int64_t count(const std::string& prefix) const {
    int64_t count = 0;
    for (auto at = shapes_.lower_bound(prefix); at != shapes_.end() && at->first.starts_with(prefix); ++at) {
      const std::string_view suffix = std::string_view(at->first).substr(prefix.size());
      int64_t index = -1;
      std::from_chars(suffix.data(), suffix.data() + suffix.size(), index);
      if (index > 4095) throw Error(where_, "at most 4096 layers", at->first);
      count = std::max(count, index + 1);
    }
    return count;
  }
  const std::string& where() const { return where_; }

 private:
  const std::map<std::string, Shape>& shapes_;
  std::string where_;
};

}  // namespace vitrail::models
