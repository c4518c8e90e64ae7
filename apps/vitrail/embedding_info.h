// SPDX-License-Identifier: Apache-2.0
#pragma once
// What embeddings were made with: the JSON file that `vitrail embed` writes beside them and `vitrail index` takes over,
// so that embeddings of different models are not compared.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/pipeline/feature_request.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::app {

struct EmbeddingInfo {
  std::string model;                  // as it was named; models are compared by `probe`
  pipeline::FeatureOptions features;  // tokens, layers and norm
  bool normalized = false;
  // How the rows were computed and stored.  Older files do not have these.
  std::string dtype = "fp32";
  int64_t tome = 0;
  bool exif = false;
  // Pooled features of a fixed image, of length 1: the same for equal weights and preprocessing.
  std::vector<float> probe;
};

EmbeddingInfo embedding_info(const Model& model, const std::string& name, const pipeline::FeatureOptions& features);

// Throws Error that names `where` unless both have the same tokens, layers and norm, and about the same probe.  Other
// precisions and file formats of a model are the same model.
void check_same_embedding(const EmbeddingInfo& expected, const EmbeddingInfo& got, const std::string& where);

// Throws Error that names `where` unless the rows of both, in the files of one folder, were computed and stored alike.
void check_same_rows(const EmbeddingInfo& expected, const EmbeddingInfo& got, const std::string& where);

// FILE.npy has FILE.json, the folder of shards has embedding.json.
std::filesystem::path info_path(const std::filesystem::path& array_or_folder);

std::string to_json(const EmbeddingInfo& info);
// None if there is no such file.  Throws Error naming a file with other content.
std::optional<EmbeddingInfo> read_embedding_info(const std::filesystem::path& file);

}  // namespace vitrail::app
