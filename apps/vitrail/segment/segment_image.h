// SPDX-License-Identifier: Apache-2.0
#pragma once
// An image of `vitrail segment`: its pixels and its embedding, each computed once.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/decode.h"
#include "vitrail/sam/embedding_cache.h"

namespace vitrail::app {

class SegmentImage {
 public:
  // cache: may be null.  All must outlive the image.
  SegmentImage(const sam::Predictor& predictor, const sam::EmbeddingCache* cache, const image::DecodeOptions& decode,
               std::string path, std::vector<std::byte> bytes);

  const std::string& path() const { return path_; }
  // Decoded at the first call.  Throws Error.
  const image::Image& pixels();
  // From the cache if it is there, without the image's pixels.  Throws Error.
  const sam::ImageEmbedding& embedding();

 private:
  sam::ImageEmbedding computed();

  const sam::Predictor& predictor_;
  const sam::EmbeddingCache* cache_;
  image::DecodeOptions decode_;
  std::string path_;
  std::vector<std::byte> bytes_;
  std::optional<image::Image> pixels_;
  std::optional<sam::ImageEmbedding> embedding_;
};

}  // namespace vitrail::app
