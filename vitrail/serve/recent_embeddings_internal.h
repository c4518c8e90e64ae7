// SPDX-License-Identifier: Apache-2.0
#pragma once
// What models have encoded of the images that came last, so that another click on an image is quick.
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "vitrail/tasks/task.h"

namespace vitrail::serve {

using tasks::EncodingPointer;

// Thread-safe.  The embeddings that were used longest ago are dropped when all together exceed the budget.
class RecentEmbeddings {
 public:
  explicit RecentEmbeddings(size_t max_bytes) : max_bytes_(max_bytes) {}

  EncodingPointer find(const std::string& key);  // null: it is not there
  // Keeps nothing that alone exceeds the budget.
  void add(const std::string& key, const EncodingPointer& encoding);
  size_t bytes() const;

 private:
  using Entry = std::pair<std::string, EncodingPointer>;

  size_t max_bytes_, bytes_ = 0;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the one that was used last is the first
  std::map<std::string, std::list<Entry>::iterator> places_;
};

}  // namespace vitrail::serve
