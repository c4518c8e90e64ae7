// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/recent_embeddings_internal.h"

namespace vitrail::serve {
namespace {

size_t bytes_of(const Tensor& tensor) {
  return tensor.defined() ? static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype()) : 0;
}

size_t bytes_of(const sam::ImageEmbedding& embedding) {
  return bytes_of(embedding.values) + bytes_of(embedding.hq_features) + bytes_of(embedding.projections) +
         bytes_of(embedding.decoder_input);
}

}  // namespace

std::optional<sam::ImageEmbedding> RecentEmbeddings::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->second;
}

void RecentEmbeddings::add(const std::string& key, const sam::ImageEmbedding& embedding) {
  const size_t size = bytes_of(embedding);
  const std::lock_guard lock(mutex_);
  if (size > max_bytes_ || places_.contains(key)) return;
  while (bytes_ + size > max_bytes_) {
    bytes_ -= bytes_of(entries_.back().second);
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
  entries_.emplace_front(key, embedding);
  places_[key] = entries_.begin();
  bytes_ += size;
}

size_t RecentEmbeddings::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace vitrail::serve
