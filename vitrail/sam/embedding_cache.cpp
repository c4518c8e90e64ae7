// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/embedding_cache.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "vitrail/base/digest_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::sam {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTensor = "embedding";
constexpr const char* kRemedy = "; delete the file to compute it again";

std::string feature_name(size_t index) { return str("features.", index); }

std::string field_of(const weights::Checkpoint& file, const std::string& name) {
  const auto found = file.metadata().find(name);
  return found == file.metadata().end() ? "" : found->second;
}

int64_t side_of(const weights::Checkpoint& file, const std::string& name) {
  const std::string text = field_of(file, name);
  int64_t side = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), side);
  const bool valid = error == std::errc() && end == text.data() + text.size() && side > 0;
  if (!valid) throw Error(file.path(), "the " + name + " of an image in the metadata", "'" + text + "'" + kRemedy);
  return side;
}

Tensor rounded_to_half(const Tensor& values) {
  const Tensor half = values.contiguous().to(DType::f16), rounded = half.to(DType::f32);
  const float* const first = rounded.data<float>();
  if (!std::all_of(first, first + rounded.numel(), [](float v) { return std::isfinite(v); })) {
    throw Error("image embedding", "values in the range of fp16, which the cache has", "a larger one or a NaN");
  }
  return half;
}

}  // namespace

std::string embedding_key(std::span<const std::byte> file, bool exif) { return sha256(file) + (exif ? "-exif" : ""); }

std::string embedding_model(const models::ModelFiles& files, const PredictorOptions& options) {
  const std::string digest = models::sam_encoder_digest(files, {options.preprocessing});
  return options.precision == kernels::Precision::fp32 ? digest : str(kernels::name_of(options.precision), "-", digest);
}

EmbeddingCache::EmbeddingCache(fs::path folder, std::string model)
    : folder_(std::move(folder)), model_(std::move(model)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error(folder_.string(), "a folder for image embeddings", error.message());
}

fs::path EmbeddingCache::file_of(const std::string& key) const { return folder_ / (key + ".safetensors"); }

std::optional<ImageEmbedding> EmbeddingCache::find(const std::string& key) const {
  const fs::path path = file_of(key);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const weights::Checkpoint file = weights::Checkpoint::open(path);
  if (const std::string model = field_of(file, "model"); model != model_) {
    throw Error(path.string(), "an embedding of this model (" + model_.substr(0, 12) + "…)",
                "one of another model (" + model.substr(0, 12) +
                    "…); each model and precision needs a cache folder of its own");
  }
  if (!file.has(kTensor)) throw Error(path.string(), "a tensor \"embedding\"", str("none", kRemedy));
  const auto tensor = [&](const std::string& name) { return file.tensor(name).to(DType::f32).contiguous(); };
  ImageEmbedding embedding{
      .values = tensor(kTensor), .width = side_of(file, "width"), .height = side_of(file, "height")};
  for (size_t i = 0; file.has(feature_name(i)); ++i) embedding.features.push_back(tensor(feature_name(i)));
  return embedding;
}

ImageEmbedding EmbeddingCache::add(const std::string& key, const ImageEmbedding& embedding) const {
  std::vector<std::pair<std::string, Tensor>> halves{{kTensor, rounded_to_half(embedding.values)}};
  for (size_t i = 0; i < embedding.features.size(); ++i)
    halves.emplace_back(feature_name(i), rounded_to_half(embedding.features[i]));
  const std::map<std::string, std::string> metadata{
      {"model", model_}, {"width", std::to_string(embedding.width)}, {"height", std::to_string(embedding.height)}};
  weights::write_safetensors(file_of(key), halves, metadata);
  ImageEmbedding rounded{
      .values = halves[0].second.to(DType::f32), .width = embedding.width, .height = embedding.height};
  for (size_t i = 1; i < halves.size(); ++i) rounded.features.push_back(halves[i].second.to(DType::f32));
  return rounded;
}

}  // namespace vitrail::sam
