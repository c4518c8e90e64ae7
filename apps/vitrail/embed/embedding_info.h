// SPDX-License-Identifier: Apache-2.0
#pragma once
// What embeddings were made with: the JSON file that `vitrail embed` writes beside them and `vitrail index` takes over,
// so that embeddings of different models are not compared.
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/pipeline/model.h"
#include "vitrail/tasks/images/classifying_model.h"

namespace vitrail::app {

// How images become inputs of a model: the values of the options that set it.
struct EmbeddingPreprocessing {
  std::optional<std::array<int64_t, 2>> image_size{};  // height, width
  std::vector<double> mean{}, std{};                   // per channel
  std::string interpolation{};
  // Unset for the processor of a model of transformers, on which both options have no effect.
  std::optional<double> crop_pct{};
  std::string crop_mode{};
};

EmbeddingPreprocessing embedding_preprocessing(const models::ModelConfig& config);

struct EmbeddingInfo {
  std::string model;  // as it was named; models are compared by `probe`
  infer::FeatureOptions features;
  // How the rows were computed and stored.  Older files do not have these.
  std::string dtype = "fp32";
  int64_t tome = 0;
  bool exif = false;
  // Unset in older files, and of texts: nothing is known to differ then, also of `exif`.
  std::optional<EmbeddingPreprocessing> preprocessing{};
  // Pooled features of a fixed image, of length 1: the same for equal weights and preprocessing.
  std::vector<float> probe;
};

// Without what options of the command alone set: dtype, tome and exif.
EmbeddingInfo embedding_info(const tasks::ClassifyingModel& model, const std::string& name,
                             const infer::FeatureOptions& features);
EmbeddingInfo embedding_info(const Model& model, const std::string& name, const infer::FeatureOptions& features);

// Throws Error that names `where` unless both have the same tokens, layers and final norm, and about the same probe.
// Other precisions and file formats of a model are the same model.
void check_same_embedding(const EmbeddingInfo& expected, const EmbeddingInfo& got, const std::string& where);

// Throws Error that names `where` unless the rows of both, in the files of one folder, were computed and stored alike.
void check_same_rows(const EmbeddingInfo& expected, const EmbeddingInfo& got, const std::string& where);

// Throws Error that names `where` and the differing options unless both images were preprocessed alike.
void check_same_preprocessing(const EmbeddingInfo& expected, const EmbeddingInfo& got, const std::string& where);

// FILE.npy has FILE.json, the folder of shards has embedding.json.
std::filesystem::path info_path(const std::filesystem::path& array_or_folder);

std::string to_json(const EmbeddingInfo& info);
// None if there is no such file.  Throws Error naming a file with other content.
std::optional<EmbeddingInfo> read_embedding_info(const std::filesystem::path& file);

}  // namespace vitrail::app
