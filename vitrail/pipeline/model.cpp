// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/model.h"

#include <cmath>
#include <optional>

#include "vitrail/analysis/attention_map.h"
#include "vitrail/base/call_limit_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/data/metrics/multi_label_report.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/pipeline/class_names.h"

namespace vitrail {
namespace {

using image::ImageView;
using Images = std::span<const ImageView>;

infer::SessionOptions session_options(const models::ModelConfig& config, const ModelOptions& options) {
  const kernels::Precision own = config.int8 ? kernels::Precision::int8 : kernels::Precision::fp32;
  return {.threads = options.threads,
          .precision = options.precision.value_or(own),
          .excluded_layers = config.int8.value_or(models::Int8Config{}).excluded,
          .merged_per_block = options.merged_per_block};
}

// The number of leading images whose inputs have one size.
size_t num_of_one_size(const image::EvalTransform& transform, Images images) {
  const auto size_of = [&](size_t i) { return output_size(transform, images[i].width(), images[i].height()); };
  size_t count = 1;
  while (count < images.size() && size_of(count) == size_of(0)) ++count;
  return count;
}

// Whether the inputs have the images' own sizes ("do_resize": false).
bool keeps_size(const image::EvalTransform& transform) {
  const auto& steps = transform.processor;
  return steps && steps->resize == image::ProcessorSteps::Resize::none && !steps->crop;
}

// An image is not to blame if the preprocessing makes inputs that the model cannot take.
void require_input_size(const models::VisionTransformerConfig& config, const image::EvalTransform& transform,
                        const std::string& where) {
  if (keeps_size(transform)) return;  // an image of another size than the model's is an error of the image
  const std::array<int64_t, 2> size = output_size(transform, 64, 64);
  const auto text = [](const std::array<int64_t, 2>& of) { return str(of[1], "×", of[0]); };
  if (!config.dynamic_img_size && size != config.img_size)
    throw Error(where, str("preprocessing to inputs of ", text(config.img_size), ", as the model has positions for"),
                text(size) + "; another image size interpolates them (--image-size)");
  const auto& patch = config.patch_size;
  if (!config.allow_remainder && (size[0] % patch[0] != 0 || size[1] % patch[1] != 0))
    throw Error(where, str("preprocessing to inputs that the patch size ", text(patch), " divides"), text(size));
}

}  // namespace

Model::Model(const models::ModelFiles& files, const ModelOptions& options)
    : Model(models::open_model(files, options.load), options) {}

Model::Model(const models::OpenedModel& opened, const ModelOptions& options) {
  std::optional<ThreadCount> threads;
  if (options.threads > 0) threads.emplace(options.threads);
  config_ = opened.config;
  class_names_ = pipeline::class_names(config_, options.labels);
  transform_ = infer::transform_of(config_.preprocessing, opened.checkpoint->path());
  color_mode_ = infer::color_mode_of(config_.vit.in_chans);
  session_ = std::make_unique<infer::Session>(models::build_model(opened, weights::Int8Weights::keep),
                                              session_options(config_, options));
  require_input_size(config_.vit, transform_, opened.checkpoint->path());
}

image::Image Model::read(const std::filesystem::path& path, image::DecodeOptions options) const {
  options.mode = color_mode_;
  return image::read_image(path, options);
}

image::Image Model::decode(std::span<const std::byte> bytes, image::DecodeOptions options) const {
  options.mode = color_mode_;
  return image::decode(bytes, options, "image");
}

void Model::preprocess_into(const ImageView& image, float* out) const {
  const bool is_grey = image.format() == image::PixelFormat::grey;
  if (is_grey == (color_mode_ == image::ColorMode::grey)) return image::apply_into(image, transform_, out);
  image::apply_into(image::to_image(image, color_mode_), transform_, out);
}

Tensor Model::preprocess(Images images) const {
  if (images.empty()) throw Error("model", "at least one image", "none");
  if (const size_t count = num_of_one_size(transform_, images); count < images.size()) {
    throw Error("model", "images whose inputs have one size", str("another size from image ", count, " on"));
  }
  const auto [height, width] = output_size(transform_, images[0].width(), images[0].height());
  const auto count = static_cast<int64_t>(images.size());
  const Tensor batch = Tensor::empty({count, image::channels_of(color_mode_), height, width});
  const ComputeTeam team(count == 1 ? 1 : session_->threads());
  parallel_for_balanced(0, count, 1, [&, limit = call_limit()](int64_t first, int64_t last) {
    const BorrowedCallLimit borrowed(limit);
    for (int64_t i = first; i < last; ++i) {
      check_call_limit();
      preprocess_into(images[static_cast<size_t>(i)], batch.select(0, i).data<float>());
    }
  });
  return batch;
}

std::vector<Tensor> Model::run(Images images, const infer::Request& request) const {
  if (images.empty()) throw Error("model", "at least one image", "none");
  std::vector<std::vector<Tensor>> by_result;  // one tensor per batch
  for (size_t count = 0; !images.empty(); images = images.subspan(count)) {
    count = num_of_one_size(transform_, images);
    const std::vector<Tensor> results = session_->run(preprocess(images.first(count)), request);
    by_result.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) by_result[i].push_back(results[i]);
  }
  std::vector<Tensor> results;
  for (const std::vector<Tensor>& batches : by_result) {
    results.push_back(batches.size() == 1 ? batches[0] : ops::cat(batches, 0));
  }
  return results;
}

Tensor Model::logits(Images images) const { return run(images)[0]; }

Model::LogitsAndFeatures Model::logits_and_features(Images images) const {
  const std::vector<Tensor> results = run(images, {.output = infer::Output::logits_and_features});
  return {results[0], results[1]};
}

std::vector<Prediction> Model::predictions(std::span<const float> logits, int64_t top, const std::string& where) const {
  return predictions_of(config_, class_names_, logits, top, where);
}

std::vector<Prediction> predictions_of(const models::ModelConfig& config, const std::vector<std::string>& names,
                                       std::span<const float> logits, int64_t top, const std::string& where) {
  const bool uses_sigmoid = models::gives_sigmoid(config);
  const bool is_value = config.problem_type == models::ProblemType::regression;
  std::vector<Prediction> predictions;
  for (const auto& [index, softmax] : data::top_k(logits, top, where)) {
    const float logit = logits[static_cast<size_t>(index)];
    const float probability = is_value ? logit : uses_sigmoid ? data::sigmoid(logit) : softmax;
    predictions.push_back(
        {index, names.empty() ? str("class ", index) : names.at(static_cast<size_t>(index)), probability});
  }
  return predictions;
}

std::vector<Prediction> Model::classify(const ImageView& image, int64_t top) const {
  return classify(Images(&image, 1), top).front();
}

std::vector<std::vector<Prediction>> Model::classify(Images images, int64_t top) const {
  models::require_classifier(config_, "classify");
  const int64_t classes = config_.vit.num_classes;
  const Tensor rows = logits(images);
  std::vector<std::vector<Prediction>> results;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const std::span<const float> row(rows.data<float>() + i * classes, static_cast<size_t>(classes));
    results.push_back(predictions(row, top, str("image ", i)));
  }
  return results;
}

Tensor Model::embed(const ImageView& image, const infer::FeatureOptions& options) const {
  return embed(Images(&image, 1), options).select(0, 0);
}

infer::Request Model::request_of(const infer::FeatureOptions& options) const {
  if (options.layers.empty()) throw Error("layer", "at least one index of a block", "none");
  const int64_t layer = options.layers.front();
  const bool last = options.layers.size() == 1 && (layer == -1 || layer == config_.vit.depth - 1);
  const bool projects = config_.vit.projection_head && options.tokens == infer::Tokens::pooled && last;
  if (projects && options.final_norm) return {.features = {.l2_normalize = options.l2_normalize}};
  return {.output = infer::Output::features, .features = options};
}

Tensor Model::embed(Images images, const infer::FeatureOptions& options) const {
  return run(images, request_of(options))[0];
}

std::array<int64_t, 2> Model::patch_at(std::array<int64_t, 2> pixel, int64_t width, int64_t height) const {
  const image::Region region = image::visible_region(transform_, width, height);
  const auto [input_height, input_width] = output_size(transform_, width, height);
  const std::array<int64_t, 2> grid = session_->model().grid_of(input_height, input_width);
  const auto at = [](int64_t position, double begin, double end, int64_t cells) {
    const double cell = (static_cast<double>(position) + 0.5 - begin) / (end - begin) * static_cast<double>(cells);
    return static_cast<int64_t>(std::floor(cell));
  };
  const std::array<int64_t, 2> patch{at(pixel[1], region.top, region.bottom, grid[0]),
                                     at(pixel[0], region.left, region.right, grid[1])};
  if (patch[0] >= 0 && patch[0] < grid[0] && patch[1] >= 0 && patch[1] < grid[1]) return patch;
  throw Error(
      "query",
      str("a pixel that the model sees: X from ", std::lround(region.left), " to ", std::lround(region.right) - 1,
          ", Y from ", std::lround(region.top), " to ", std::lround(region.bottom) - 1),
      str(pixel[0], ",", pixel[1]));
}

Tensor Model::attention(const ImageView& image, const AttentionMapOptions& options) const {
  const models::VisionTransformer& vit = session_->model();
  const Tensor input = preprocess({&image, 1});
  const std::array<int64_t, 2> grid = vit.grid_of(input.size(2), input.size(3));
  std::optional<int64_t> query;
  if (options.query) {
    const auto [row, column] = patch_at(*options.query, image.width(), image.height());
    query = vit.num_prefix_tokens() + row * grid[1] + column;
  } else if (config_.vit.class_token) {
    query = 0;
  }
  std::vector<Tensor> blocks;  // [H, N, N] each
  for (const Tensor& weights : session_->run(
           input, {.output = infer::Output::attention, .layer = options.layer, .all_layers = options.rollout})) {
    blocks.push_back(weights.select(0, 0));
  }
  const auto map_of = [&](const Tensor& weights) {
    return analysis::patch_attention(weights, query, vit.num_prefix_tokens(), grid);
  };
  if (options.rollout) return map_of(analysis::attention_rollout(blocks));
  if (!options.head) return map_of(analysis::mean_over_heads(blocks[0]));
  if (*options.head < 0 || *options.head >= blocks[0].size(0)) {
    throw Error("head", str("a head index from 0 to ", blocks[0].size(0) - 1), str(*options.head));
  }
  return map_of(blocks[0].select(0, *options.head));
}

std::string Model::class_name(int64_t index) const {
  return class_names_.empty() ? str("class ", index) : class_names_.at(static_cast<size_t>(index));
}

}  // namespace vitrail
