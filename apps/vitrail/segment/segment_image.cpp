// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/segment_image.h"

#include <utility>

namespace vitrail::app {

SegmentImage::SegmentImage(const sam::Predictor& predictor, const sam::EmbeddingCache* cache,
                           const image::DecodeOptions& decode, std::string path, std::vector<std::byte> bytes)
    : predictor_(predictor), cache_(cache), decode_(decode), path_(std::move(path)), bytes_(std::move(bytes)) {}

const image::Image& SegmentImage::pixels() {
  if (!pixels_) pixels_ = image::decode(bytes_, decode_, path_);
  return *pixels_;
}

const sam::ImageEmbedding& SegmentImage::embedding() {
  if (!embedding_) embedding_ = computed();
  return *embedding_;
}

// A cached embedding is used as it is read back, so that the first run has the results of the later ones.
sam::ImageEmbedding SegmentImage::computed() {
  if (!cache_) return predictor_.embed(pixels());
  const std::string key = sam::embedding_key(bytes_, decode_.apply_exif);
  if (auto known = cache_->find(key)) return std::move(*known);
  return cache_->add(key, predictor_.embed(pixels()));
}

}  // namespace vitrail::app
