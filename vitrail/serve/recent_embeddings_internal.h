// SPDX-License-Identifier: Apache-2.0
#pragma once
// Image embeddings of Segment Anything that were computed last, so that another click on an image is quick.
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "vitrail/sam/predictor.h"

namespace vitrail::serve {

// Thread-safe.  The embeddings that were used longest ago are dropped when all together exceed the budget.
class RecentEmbeddings {
 public:
  explicit RecentEmbeddings(size_t max_bytes) : max_bytes_(max_bytes) {}

  std::optional<sam::ImageEmbedding> find(const std::string& key);
  // Keeps nothing that alone exceeds the budget.
  void add(const std::string& key, const sam::ImageEmbedding& embedding);
  size_t bytes() const;

 private:
  using Entry = std::pair<std::string, sam::ImageEmbedding>;

  size_t max_bytes_, bytes_ = 0;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the one that was used last is the first
  std::map<std::string, std::list<Entry>::iterator> places_;
};

}  // namespace vitrail::serve
