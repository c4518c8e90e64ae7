// SPDX-License-Identifier: Apache-2.0
#pragma once
// Image embeddings in a folder, so that later runs do not compute them again.
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "vitrail/sam/predictor.h"

namespace vitrail::sam {

// The key of an image: the SHA-256 of its file's bytes.  exif: whether its orientation is applied.
std::string embedding_key(std::span<const std::byte> file, bool exif);

// Identifies what computes the embeddings of a predictor with these options: models::sam_encoder_digest() of the
// checkpoint, after the name of a precision other than fp32.  Throws Error as models::load_sam().
std::string embedding_model(const models::ModelFiles& files, const PredictorOptions& options);

// FOLDER/KEY.safetensors has the tensor "embedding" [C, h, w] and the embedding's "features.N" in f16, and in its
// metadata the model's digest and the image's size.  Files are mapped, and appear only when they are complete.  Const
// functions are thread-safe.
class EmbeddingCache {
 public:
  // model: of embedding_model().  Creates the folder.  Throws Error if that fails.
  EmbeddingCache(std::filesystem::path folder, std::string model);

  // The embedding of an image, if it is known.  Throws Error naming the file if it is of another model, or damaged.
  std::optional<ImageEmbedding> find(const std::string& key) const;

  // Keeps an embedding and returns it as find() does: rounded to f16.  Throws Error for a value beyond the range of
  // f16, and if the file cannot be written.
  ImageEmbedding add(const std::string& key, const ImageEmbedding& embedding) const;

 private:
  std::filesystem::path file_of(const std::string& key) const;

  std::filesystem::path folder_;
  std::string model_;
};

}  // namespace vitrail::sam
