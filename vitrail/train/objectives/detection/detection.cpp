// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/detection/detection_internal.h"

#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/rf_detr/box_operations.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/precision.h"
#include "vitrail/train/objectives/detection/detection_recipe_internal.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/throughput_meter_internal.h"
#include "vitrail/train/run/validation_change_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kMaxDetections = 100;  // as COCO counts them in an image
constexpr size_t kWorstImages = 6;
constexpr double kShownScore = 0.5;

// The transform that the saved model has.
image::EvalTransform saved_transform(const models::RfDetrConfig& config) {
  const std::string written = models::write_rf_detr_config(config);
  return infer::transform_of(models::read_rf_detr_config(written, "config.json", "", "").preprocessing, "data");
}

// The normalisation and the filter, for crops of the input's size.
image::EvalTransform crop_transform(const models::RfDetrConfig& config) {
  models::Preprocessing preprocessing = config.preprocessing;
  preprocessing.rule = models::ResizeRule::timm;
  preprocessing.crop_pct = 1;
  return infer::transform_of(preprocessing, "data");
}

DetectionLossOptions loss_options(int64_t groups) {
  return {.classes = ClassLoss::iou_aware, .class_cost = 2, .groups = groups};
}

}  // namespace

const Metrics& detection_metrics() {
  static const Metrics kMetrics{
      .each = {{"ap50", "AP50", "AP50 {}", ScoreUnit::percent, "AP50"}, {"ap", "AP", "AP {}", ScoreUnit::percent}},
      .line = "AP50 {0}  AP {1}",
      .average_line = "{0}, {1}",
      .loss_in_summary = true};
  return kMetrics;
}

Detection::Detection(const ObjectiveContext& context)
    : context_(context),
      data_(open_object_data(context.recipe.data)),
      holds_out_(context.recipe.data.val.empty() && data_.validation != nullptr),
      prepared_(prepare_detector(context.recipe, data_.classes)),
      transform_(saved_transform(prepared_.model.config())),
      samples_(data_.train, infer::color_mode_of(prepared_.model.config().backbone.vit.in_chans), context.recipe.data),
      augmentation_(context.recipe, crop_transform(prepared_.model.config())) {}

std::vector<ImageSet> Detection::image_sets() const { return train::image_sets(data_); }

std::string Detection::preprocessing() const {
  return preprocessing_text(prepared_.model.config().preprocessing, context_.recipe.data.exif);
}

std::vector<std::string> Detection::introduction() const {
  const models::RfDetrConfig& config = prepared_.model.config();
  std::vector<std::string> lines{str(config.architecture, " at ", config.side(), "×", config.side(), ", ",
                                     prepared_.model.num_parameters(), " parameters, ", config.num_queries,
                                     " queries in ", config.groups, " groups for ", config.num_classes(), " classes")};
  for (const std::string& note : prepared_.notes) lines.push_back("from " + context_.recipe.model.init + ": " + note);
  lines.push_back("training on " + data_.train_name);
  return lines;
}

int64_t Detection::batches() const { return ceil_div(std::ssize(data_.samples), context_.recipe.batch_size); }

Detection::Drawn Detection::draw(int64_t image, int64_t epoch) const {
  const data::AugmentKey key{.seed = context_.recipe.seed, .epoch = epoch, .sample = image};
  std::vector<std::shared_ptr<const ObjectSample>> samples{samples_.get(image)};
  if (!samples.front()) return {};
  for (const int64_t other : augmentation_.mosaic_of(key, std::ssize(data_.samples))) {
    auto sample = samples_.get(data_.samples[static_cast<size_t>(other)]);
    samples.push_back(sample ? std::move(sample) : samples.front());
  }
  const int64_t side = prepared_.model.config().side();
  Drawn drawn{std::vector<float>(static_cast<size_t>(side * side * samples.front()->image.channels)), {}};
  drawn.targets = augmentation_.apply(samples, key, drawn.image.data());
  return drawn;
}

void Detection::start_epoch(int64_t epoch, int64_t batch) { drawn_.start(data_.samples, epoch, batch); }

BatchResult Detection::train_batch(const BatchPosition& position, const Backward& backward) {
  const Recipe& recipe = context_.recipe;
  const Clock::time_point start = Clock::now();
  std::vector<float> images;
  std::vector<DetectionTargets> targets;
  BatchResult result;
  int64_t objects = 0;
  for (int64_t i = 0; i < recipe.batch_size; ++i) {
    std::optional<Drawn> sample = drawn_.next();
    if (!sample) break;  // the last batch of an epoch may be smaller
    if (sample->image.empty()) continue;
    images.insert(images.end(), sample->image.begin(), sample->image.end());
    objects += std::ssize(sample->targets.classes);
    targets.push_back(std::move(sample->targets));
    ++result.images;
  }
  waited_ += seconds_since(start);
  // After a resume, the samples count only what was met again.
  result.skipped = std::max<int64_t>(0, samples_.unreadable() - position.skipped);
  if (result.images == 0) return result;
  result.weight = static_cast<double>(std::max<int64_t>(1, objects));
  const models::RfDetrConfig& config = prepared_.model.config();
  const nn::RandomScope random(recipe.seed, position.number);
  const ops::MixedPrecision precision(recipe.precision == "bf16" ? DType::bf16 : DType::f32);
  prepared_.model.train(detection_of(recipe).train_backbone);
  const Tensor input =
      Tensor::from<float>({result.images, config.backbone.vit.in_chans, config.side(), config.side()}, images);
  std::vector<DetectorOutput> outputs;
  for (const models::RfDetrOutput& output : prepared_.model.outputs(input, config.groups))
    outputs.push_back({output.logits.to(DType::f32), output.boxes.to(DType::f32)});
  return backward(detection_loss(outputs, targets, loss_options(config.groups)), result);
}

DetectorOutput Detection::predict(const image::Image& image) const {
  const auto outputs = prepared_.model.outputs(image::apply(image, transform_).unsqueeze(0), 1);
  return {outputs.front().logits, outputs.front().boxes};
}

std::vector<Detection::Found> Detection::found_in(const image::Image& image, const DetectorOutput& output) const {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  const Tensor logits = output.logits.squeeze(0).contiguous(), boxes = output.boxes.contiguous();
  std::vector<Found> found;
  for (const auto& [query, index, score] : models::best_classes(logits, kMaxDetections)) {
    const float* const box = boxes.data<float>() + query * 4;
    const double x = static_cast<double>(box[0]), y = static_cast<double>(box[1]);
    const double half_width = static_cast<double>(box[2]) / 2, half_height = static_cast<double>(box[3]) / 2;
    found.push_back(
        {index,
         static_cast<double>(score),
         {(x - half_width) * width, (y - half_height) * height, (x + half_width) * width, (y + half_height) * height}});
  }
  return found;
}

// Returns the F1 of the boxes with high scores.
double Detection::add_to(analysis::CocoMetrics& metrics, const ObjectSample& sample, const std::vector<Found>& found,
                         int64_t image) const {
  std::vector<analysis::CocoTruth> truths;
  for (const data::LabelledObject& object : sample.objects)
    truths.push_back({object.index, object.area, object.crowd, object.difficult});
  std::vector<analysis::CocoDetection> detections;
  for (const Found& each : found) {
    const auto& [left, top, right, bottom] = each.box;
    detections.push_back({each.index, each.score, (right - left) * (bottom - top)});
  }
  const auto overlap = [&](size_t detection, size_t truth) {
    return analysis::box_overlap(found[detection].box, sample.objects[truth].box, truths[truth].crowd);
  };
  metrics.add(image, truths, detections, overlap);
  analysis::CocoMetrics one(metrics.categories(), {kMaxDetections});
  std::erase_if(detections, [](const analysis::CocoDetection& each) { return each.score <= kShownScore; });
  one.add(0, truths, detections, overlap);
  const auto best = one.best_score();
  return best ? best->f1 : truths.empty() && detections.empty() ? 1 : 0;
}

Measurement Detection::measure(Split split, const std::function<void(int64_t, int64_t)>& progress) {
  const autograd::NoGrad no_grad;
  prepared_.model.eval();
  const std::shared_ptr<const ObjectDataset>& dataset = data_.of(split);
  DataRecipe uncached = context_.recipe.data;
  uncached.keep_decoded_mb = 0;
  const ObjectSamples samples(dataset, infer::color_mode_of(prepared_.model.config().backbone.vit.in_chans), uncached);
  BoxEvaluation evaluation{analysis::CocoMetrics(std::ssize(data_.classes), {kMaxDetections})};
  Measurement result;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    if (const auto sample = samples.get(i)) {
      const DetectorOutput output = predict(sample->image);
      result.loss += detection_loss({output}, {targets_of(*sample)}, loss_options(1)).item<double>();
      ++result.images;
      evaluation.worst.push_back({add_to(evaluation.metrics, *sample, found_in(sample->image, output), i), i});
      std::ranges::stable_sort(evaluation.worst, {}, &BoxAgreement::f1);
      if (evaluation.worst.size() > kWorstImages) evaluation.worst.resize(kWorstImages);
    }
    progress(i + 1, dataset->size());
  }
  if (result.images == 0) throw Error(name(split), "images that can be read", "none");
  result.loss /= static_cast<double>(result.images);
  const analysis::CocoMetrics& all = evaluation.metrics;
  result.scores = scores_of(
      metrics().each,
      {all.average_precision(analysis::CocoArea::all, size_t{0}).value_or(0), all.average_precision().value_or(0)},
      result.images);
  result.details = std::move(evaluation);
  return result;
}

}  // namespace vitrail::train
