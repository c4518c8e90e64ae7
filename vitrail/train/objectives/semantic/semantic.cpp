// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/precision.h"
#include "vitrail/train/objectives/semantic/semantic_recipe_internal.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/throughput_meter_internal.h"
#include "vitrail/train/run/validation_change_internal.h"

namespace vitrail::train {
namespace {

// The transform that the saved model has.
image::EvalTransform transform_of(const models::SemanticConfig& config) {
  const std::string written = models::write_semantic_config(config);
  return infer::transform_of(models::read_semantic_config(written, "config.json").preprocessing, "data");
}

// The same pixels by timm's steps, which random crops are for.
image::EvalTransform training_transform(const models::SemanticConfig& config) {
  return infer::transform_of(config.preprocessing, "data");
}

Tensor weights_of(const Recipe& recipe, size_t classes) {
  const std::vector<double>& weights = recipe.loss.class_weights;
  if (weights.empty()) return {};
  if (weights.size() != classes)
    throw Error("loss.class_weights", str("a weight for each of ", classes, " classes"), str(weights.size()));
  return Tensor::from<double>({static_cast<int64_t>(classes)}, weights).to(DType::f32);
}

// The mean and the variance of each feature over all patches.
class FeatureStatistics {
 public:
  void add(const Tensor& features) {  // [1, h, w, D]
    const int64_t dim = features.size(3), patches = features.numel() / dim;
    sum_.resize(static_cast<size_t>(dim));
    squares_.resize(static_cast<size_t>(dim));
    const float* values = features.data<float>();
    for (int64_t i = 0; i < patches * dim; ++i) {
      const double value = values[i];
      sum_[static_cast<size_t>(i % dim)] += value;
      squares_[static_cast<size_t>(i % dim)] += value * value;
    }
    patches_ += patches;
  }
  std::vector<double> mean() const {
    std::vector<double> mean;
    for (const double sum : sum_) mean.push_back(sum / static_cast<double>(patches_));
    return mean;
  }
  std::vector<double> variance() const {
    std::vector<double> variance;
    for (size_t i = 0; i < sum_.size(); ++i) {
      const double mean = sum_[i] / static_cast<double>(patches_);
      variance.push_back(std::max(squares_[i] / static_cast<double>(patches_) - mean * mean, 0.0));
    }
    return variance;
  }
  bool empty() const { return patches_ == 0; }

 private:
  int64_t patches_ = 0;
  std::vector<double> sum_, squares_;
};

constexpr size_t kWorstMaps = 6;

void keep_worst_maps(std::vector<MapAgreement>& maps) {
  std::ranges::stable_sort(maps, {}, &MapAgreement::mean_iou);
  if (maps.size() > kWorstMaps) maps.resize(kWorstMaps);
}

}  // namespace

const Metrics& semantic_metrics() {
  static const Metrics kMetrics{.each = {{"miou", "mean IoU", "mean IoU {}", ScoreUnit::percent, "Mean IoU"},
                                         {"pixel_accuracy", "pixel accuracy", "pixel accuracy {}", ScoreUnit::percent}},
                                .line = "mean IoU {0}  pixel accuracy {1}",
                                .average_line = "{0}, {1}",
                                .loss_in_summary = true};
  return kMetrics;
}

Semantic::Semantic(const ObjectiveContext& context)
    : context_(context),
      data_(open_semantic_data(context.recipe)),
      holds_out_(context.recipe.data.val.empty() && data_.validation != nullptr),
      prepared_(prepare_segmenter(context.recipe, data_.classes)),
      transform_(transform_of(prepared_.model.config())),
      samples_(data_.train, std::ssize(data_.classes), semantic_of(context.recipe).ignored,
               infer::color_mode_of(prepared_.model.config().backbone.in_chans), context.recipe.data),
      augmentation_(context.recipe, training_transform(prepared_.model.config())),
      class_weights_(weights_of(context.recipe, data_.classes.size())) {}

std::vector<ImageSet> Semantic::image_sets() const { return train::image_sets(data_); }

std::string Semantic::preprocessing() const {
  return preprocessing_text(prepared_.model.config().preprocessing, context_.recipe.data.exif);
}

std::vector<std::string> Semantic::introduction() const {
  const models::SemanticConfig& config = prepared_.model.config();
  std::vector<std::string> lines{str(config.architecture, " at ", config.resize.size[1], "×", config.resize.size[0],
                                     ", ", prepared_.model.num_parameters(), " parameters, ",
                                     config.head == models::SemanticHead::dpt ? "DPT" : "linear", " head for ",
                                     config.num_classes(), " classes")};
  for (const std::string& note : prepared_.notes) lines.push_back("from " + context_.recipe.model.init + ": " + note);
  lines.push_back("training on " + data_.train_name);
  return lines;
}

int64_t Semantic::batches() const {
  return ceil_div(static_cast<int64_t>(data_.samples.size()), context_.recipe.batch_size);
}

Semantic::Drawn Semantic::draw(int64_t image, int64_t epoch) const {
  const std::shared_ptr<const MapSample> sample = samples_.get(image);
  if (!sample) return {};
  const auto pixels = static_cast<size_t>(transform_.processor->size[0] * transform_.processor->size[1]);
  Drawn drawn{std::vector<float>(pixels * static_cast<size_t>(sample->image.channels)), std::vector<int64_t>(pixels)};
  augmentation_.apply(*sample, {.seed = context_.recipe.seed, .epoch = epoch, .sample = image}, drawn.image.data(),
                      drawn.labels.data());
  return drawn;
}

void Semantic::start_epoch(int64_t epoch, int64_t batch) { drawn_.start(data_.samples, epoch, batch); }

// A frozen backbone has neither dropout nor stochastic depth.
void Semantic::use(bool training) { prepared_.model.train(training && semantic_of(context_.recipe).train_backbone); }

BatchResult Semantic::train_batch(const BatchPosition& position, const Backward& backward) {
  const Recipe& recipe = context_.recipe;
  const Clock::time_point start = Clock::now();
  std::vector<float> images;
  std::vector<int64_t> labels;
  BatchResult result;
  for (int64_t i = 0; i < recipe.batch_size; ++i) {
    const std::optional<Drawn> sample = drawn_.next();
    if (!sample) break;  // the last batch of an epoch may be smaller
    if (sample->image.empty()) continue;
    images.insert(images.end(), sample->image.begin(), sample->image.end());
    labels.insert(labels.end(), sample->labels.begin(), sample->labels.end());
    ++result.images;
  }
  waited_ += seconds_since(start);
  // After a resume, the samples count only what was met again.
  result.skipped = std::max<int64_t>(0, samples_.unreadable() - position.skipped);
  result.weight = static_cast<double>(std::ssize(labels) - std::ranges::count(labels, semantic_of(recipe).ignored));
  if (result.weight == 0) return result;
  const auto [height, width] = transform_.processor->size;
  const int64_t channels = std::ssize(images) / (result.images * height * width);
  const nn::RandomScope random(recipe.seed, position.number);
  const ops::MixedPrecision precision(recipe.precision == "bf16" ? DType::bf16 : DType::f32);
  use(true);
  const Tensor logits = prepared_.model.forward(Tensor::from<float>({result.images, channels, height, width}, images));
  const Tensor loss = map_loss(logits, Tensor::from<int64_t>({std::ssize(labels)}, labels),
                               {.size = {height, width},
                                .ignored = semantic_of(recipe).ignored,
                                .label_smoothing = recipe.loss.label_smoothing,
                                .class_weights = class_weights_});
  return backward(loss, result);
}

// [1, h, w, classes]
Tensor Semantic::logits_of(const image::Image& image) const {
  return prepared_.model.forward(image::apply(image, transform_).unsqueeze(0));
}

std::vector<Score> Semantic::begin(const SolveProgress& progress) {
  if (!prepared_.model.config().batch_norm) return {};
  constexpr int64_t kMaxImages = 1000;
  const autograd::NoGrad no_grad;
  use(false);
  const int64_t size = std::ssize(data_.samples), count = std::min(size, kMaxImages);
  FeatureStatistics statistics;
  for (int64_t i = 0; i < count; ++i) {
    const auto sample = samples_.get(data_.samples[static_cast<size_t>(i * size / count)]);
    if (sample) statistics.add(prepared_.model.features(image::apply(sample->image, transform_).unsqueeze(0)));
    progress(Progress::Phase::features, i + 1, count);
  }
  if (statistics.empty()) throw Error(context_.recipe.data.train, "images that can be read", "none");
  prepared_.model.linear_head().normalise(statistics.mean(), statistics.variance());
  return {};
}

Measurement Semantic::measure(Split split, const std::function<void(int64_t, int64_t)>& progress) {
  const autograd::NoGrad no_grad;
  use(false);
  const Recipe& recipe = context_.recipe;
  const auto classes = std::ssize(data_.classes);
  const auto ignored = static_cast<int32_t>(semantic_of(recipe).ignored);
  const std::shared_ptr<const MapDataset>& dataset = data_.of(split);
  DataRecipe uncached = recipe.data;
  uncached.keep_decoded_mb = 0;
  const MapSamples samples(dataset, classes, ignored, infer::color_mode_of(prepared_.model.config().backbone.in_chans),
                           uncached);
  const auto [height, width] = transform_.processor->size;
  MapEvaluation evaluation{.pixels = analysis::LabelMapMetrics(classes)};
  Measurement result;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    if (const auto sample = samples.get(i)) {
      const std::string where = dataset->path(i).string();
      const Tensor logits = logits_of(sample->image);
      const image::Image small = image::resize(sample->labels, width, height, image::Filter::nearest);
      const std::vector<int64_t> seen(small.pixels.begin(), small.pixels.end());
      result.loss += map_loss(logits, Tensor::from<int64_t>({std::ssize(seen)}, seen),
                              {.size = {height, width}, .ignored = ignored})
                         .item<double>();
      ++result.images;
      const std::vector<int32_t> labels(sample->labels.pixels.begin(), sample->labels.pixels.end());
      const std::vector<int32_t> predicted =
          analysis::argmax_at_size(logits.squeeze(0), sample->image.height, sample->image.width);
      evaluation.pixels.add(labels, predicted, where, ignored);
      analysis::LabelMapMetrics one(classes);
      one.add(labels, predicted, where, ignored);
      if (one.pixels() > 0) evaluation.worst.push_back({one.mean_iou(), i});
      keep_worst_maps(evaluation.worst);
    }
    progress(i + 1, dataset->size());
  }
  if (evaluation.pixels.pixels() == 0) throw Error(name(split), "pixels with a class", "none");
  result.loss /= static_cast<double>(result.images);
  result.scores =
      scores_of(metrics().each, {evaluation.pixels.mean_iou(), evaluation.pixels.pixel_accuracy()}, result.images);
  result.details = std::move(evaluation);
  return result;
}

}  // namespace vitrail::train
