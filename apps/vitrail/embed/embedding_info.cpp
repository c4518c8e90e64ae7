// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/embed/embedding_info.h"

#include <cmath>

#include "apps/vitrail/output/output.h"
#include "vitrail/base/error.h"
#include "vitrail/base/fields_json_internal.h"
#include "vitrail/base/random.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/pipeline/feature_fields.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The probes of a model in fp32 and int8 have a cosine of about 0.99, those of unrelated models of about 0.
constexpr double kSameModel = 0.95;

// Squares of random colours: they survive every preprocessing.
image::Image probe_image(image::ColorMode mode) {
  constexpr int64_t kSide = 256, kSquare = 16;
  image::Image image = image::make_image(kSide, kSide, image::channels_of(mode));
  const int64_t squares = kSide / kSquare;
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t i = 0; i < image.row_bytes(); ++i) {
      const int64_t square = y / kSquare * squares + i / image.channels / kSquare;
      const int64_t channel = i % image.channels;
      image.row(y)[i] = static_cast<uint8_t>(random_key("probe", static_cast<uint64_t>(square * 3 + channel)) >> 32);
    }
  }
  return image;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

std::string options_text(const infer::FeatureOptions& options) {
  const std::vector<FieldRow> rows = rows_of(pipeline::describe_features, options);
  return str("--tokens ", rows[0].preset, " --layer ", rows[1].preset, options.final_norm ? "" : " --no-norm");
}

using OptionValues = std::vector<std::pair<const char*, std::string>>;

// Always the same options in the same order; the value of an unset one is empty.
OptionValues option_values(const EmbeddingPreprocessing& of) {
  return {{"--image-size", of.image_size ? join(*of.image_size, ",") : ""},
          {"--mean", join(of.mean, ",")},
          {"--std", join(of.std, ",")},
          {"--interpolation", of.interpolation},
          {"--crop-pct", of.crop_pct ? str(*of.crop_pct) : ""},
          {"--crop-mode", of.crop_mode}};
}

Json preprocessing_json(const EmbeddingPreprocessing& of) {
  Json json{
      {"image_size", of.image_size.value()}, {"mean", of.mean}, {"std", of.std}, {"interpolation", of.interpolation}};
  if (of.crop_pct) json["crop_pct"] = *of.crop_pct;
  if (!of.crop_mode.empty()) json["crop_mode"] = of.crop_mode;
  return json;
}

std::optional<EmbeddingPreprocessing> preprocessing_in(const Json& record) {
  if (!record.contains("preprocessing")) return std::nullopt;
  const Json& json = record.at("preprocessing");
  EmbeddingPreprocessing of;
  of.image_size = json.at("image_size").get<std::array<int64_t, 2>>();
  of.mean = json.at("mean").get<std::vector<double>>();
  of.std = json.at("std").get<std::vector<double>>();
  of.interpolation = json.at("interpolation");
  of.crop_mode = json.value("crop_mode", std::string());
  if (json.contains("crop_pct")) of.crop_pct = json.at("crop_pct").get<double>();
  return of;
}

std::string row_options_text(const EmbeddingInfo& info) {
  return str("--dtype ", info.dtype, " --tome ", info.tome, info.exif ? " --exif" : "");
}

EmbeddingInfo info_of(const Tensor& probe, const models::ModelConfig& config, const std::string& name,
                      const infer::FeatureOptions& features) {
  return {.model = name,
          .features = features,
          .preprocessing = embedding_preprocessing(config),
          .probe = {probe.data<float>(), probe.data<float>() + probe.numel()}};
}

}  // namespace

EmbeddingPreprocessing embedding_preprocessing(const models::ModelConfig& config) {
  models::Preprocessing from = config.preprocessing;
  models::use_unit_range(from);  // as the options give mean and std
  EmbeddingPreprocessing of;
  of.image_size = from.input_size;
  of.mean = from.mean.value_or(of.mean);
  of.std = from.std.value_or(of.std);
  for (auto* values : {&of.mean, &of.std}) {  // one for all channels
    if (values->size() == 1) values->resize(static_cast<size_t>(config.vit.in_chans), values->front());
  }
  of.interpolation = from.interpolation.value_or("");
  if (from.rule == models::ResizeRule::timm) {
    of.crop_pct = from.crop_pct;
    of.crop_mode = from.crop_mode;
  }
  return of;
}

EmbeddingInfo embedding_info(const Model& model, const std::string& name, const infer::FeatureOptions& features) {
  const image::Image image = probe_image(model.color_mode());
  return info_of(model.embed(image::ImageView(image), {.l2_normalize = true}), model.config(), name, features);
}

EmbeddingInfo embedding_info(const tasks::ClassifyingModel& model, const std::string& name,
                             const infer::FeatureOptions& features) {
  const Tensor input = model.input_of(probe_image(model.color_mode())).unsqueeze(0);
  const Tensor probe =
      model.run(input, {.output = infer::Output::features, .features = {.l2_normalize = true}})[0].select(0, 0);
  return info_of(probe, model.classes(), name, features);
}

void check_same_embedding(const EmbeddingInfo& expected, const EmbeddingInfo& got, const std::string& where) {
  const std::string options = options_text(expected.features), other_options = options_text(got.features);
  if (options != other_options) throw Error(where, "embeddings by " + options, other_options);
  if (expected.probe.size() != got.probe.size())
    throw Error(where, str("embeddings of ", expected.model, " of width ", expected.probe.size()),
                str(got.model, " with width ", got.probe.size()));
  if (!(cosine(expected.probe, got.probe) > kSameModel))
    throw Error(where, "embeddings of " + expected.model, got.model + ", which is another model or preprocessing");
}

void check_same_rows(const EmbeddingInfo& expected, const EmbeddingInfo& got, const std::string& where) {
  if (const bool normalized = expected.features.l2_normalize; normalized != got.features.l2_normalize)
    throw Error(where, str("embeddings ", normalized ? "with" : "without", " --normalize"), "the opposite");
  const std::string options = row_options_text(expected), other_options = row_options_text(got);
  if (options != other_options) throw Error(where, "embeddings by " + options, other_options);
}

void check_same_preprocessing(const EmbeddingInfo& expected, const EmbeddingInfo& got, const std::string& where) {
  if (!expected.preprocessing || !got.preprocessing) return;
  const OptionValues want = option_values(*expected.preprocessing), have = option_values(*got.preprocessing);
  std::string wanted, had;
  for (size_t i = 0; i < want.size(); ++i) {
    const std::string &value = want[i].second, &other = have[i].second;
    if (value == other || value.empty() || other.empty()) continue;
    wanted += str(" ", want[i].first, " ", value);
    had += str(" ", have[i].first, " ", other);
  }
  if (expected.exif != got.exif) {
    wanted += expected.exif ? " --exif" : " no --exif";
    had += got.exif ? " --exif" : " no --exif";
  }
  if (!wanted.empty()) throw Error(where, "embeddings with" + wanted, had.substr(1));
}

fs::path info_path(const fs::path& array_or_folder) {
  std::error_code unknown;
  if (fs::is_directory(array_or_folder, unknown)) return array_or_folder / "embedding.json";
  return fs::path(array_or_folder).replace_extension(".json");
}

std::string to_json(const EmbeddingInfo& info) {
  Json json{{"model", info.model}};
  json.update(json_of_fields(pipeline::describe_features, info.features));
  json.update({{"dtype", info.dtype}, {"tome", info.tome}, {"exif", info.exif}});
  if (info.preprocessing) json["preprocessing"] = preprocessing_json(*info.preprocessing);
  json["probe"] = info.probe;
  return json_text(json) + "\n";
}

std::optional<EmbeddingInfo> read_embedding_info(const fs::path& file) {
  std::error_code unknown;
  if (!fs::exists(file, unknown)) return std::nullopt;
  const std::string text = read_text_file(file);
  try {
    const Json json = Json::parse(text);
    const EmbeddingInfo defaults;
    EmbeddingInfo info;
    info.model = json.at("model");
    info.dtype = json.value("dtype", defaults.dtype);
    info.tome = json.value("tome", defaults.tome);
    info.exif = json.value("exif", defaults.exif);
    info.preprocessing = preprocessing_in(json);
    info.probe = json.at("probe").get<std::vector<float>>();
    for (const FieldRow& row : rows_of(pipeline::describe_features)) static_cast<void>(json.at(row.name));
    std::vector<Error> problems;
    JsonFieldReader reader(json, "", problems);
    pipeline::describe_features(reader, info.features);
    if (!problems.empty()) throw problems.front();
    return info;
  } catch (const std::exception& error) {
    throw Error(file.string(), "the record that `vitrail embed` writes beside embeddings", error.what());
  }
}

}  // namespace vitrail::app
