// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/recent_embeddings_internal.h"

namespace vitrail::serve {

EncodingPointer RecentEmbeddings::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->second;
}

void RecentEmbeddings::add(const std::string& key, const EncodingPointer& encoding) {
  const size_t size = encoding->bytes();
  const std::lock_guard lock(mutex_);
  if (size > max_bytes_ || places_.contains(key)) return;
  while (bytes_ + size > max_bytes_) {
    bytes_ -= entries_.back().second->bytes();
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
  entries_.emplace_front(key, encoding);
  places_[key] = entries_.begin();
  bytes_ += size;
}

size_t RecentEmbeddings::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace vitrail::serve
