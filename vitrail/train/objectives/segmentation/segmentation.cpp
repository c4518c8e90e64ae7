// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segmentation_internal.h"

#include <algorithm>
#include <array>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/data/loader/sampler_internal.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/sam/mask_evaluation.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/throughput_meter_internal.h"
#include "vitrail/train/run/validation_change_internal.h"

namespace vitrail::train {
namespace {

std::filesystem::path cache_of(const ObjectiveContext& context) {
  const std::string& shared = segment_of(context.recipe).cache;
  return shared.empty() ? context.folder / "embeddings" : std::filesystem::path(shared);
}

}  // namespace

const Metrics& segmentation_metrics() {
  static const Metrics kMetrics{
      .each = {{"click_iou", "mean IoU for one click", "mean IoU {} for a click", ScoreUnit::fraction,
                "Mean IoU for one click"},
               {"box_iou", "mean IoU for a box", "mean IoU {} for a box", ScoreUnit::fraction}},
      .line = "mean IoU {0} for a click, {1} for a box, {n} images",
      .average_line = "{0}, {1}",
      .loss_in_summary = true};
  return kMetrics;
}

Segmentation::Segmentation(const ObjectiveContext& context)
    : context_(context),
      data_(open_segment_data(context.recipe.data)),
      prepared_(prepare_sam(context.recipe)),
      samples_(data_.train, sam::input_frame(prepared_.model.config()), context.recipe.data),
      draw_(context.recipe, samples_, prepared_.model.config().encoder.image_size(),
            prepared_.model.config().mask_size()),
      step_(context.recipe, prepared_.model, cache_of(context)) {}

std::vector<ImageSet> Segmentation::image_sets() const { return train::image_sets(data_); }

// The sides of the input are those of the weights.
std::string Segmentation::preprocessing() const {
  const int64_t side = prepared_.model.config().encoder.image_size();
  return preprocessing_text({.input_size = std::array{side, side}}, context_.recipe.data.exif);
}

std::vector<std::string> Segmentation::introduction() const {
  const models::SamEncoderConfig& encoder = prepared_.model.config().encoder;
  std::vector<std::string> lines{str("Segment Anything at ", encoder.image_size(), "×", encoder.image_size(),
                                     ", encoder ", encoder.dim, " wide with ", encoder.blocks.size(), " blocks, ",
                                     prepared_.model.num_parameters(), " parameters")};
  for (const std::string& note : prepared_.notes) lines.push_back("from " + context_.recipe.model.init + ": " + note);
  lines.push_back("training on " + data_.train_name);
  return lines;
}

int64_t Segmentation::batches() const {
  return ceil_div(static_cast<int64_t>(data_.samples.size()), context_.recipe.batch_size);
}

void Segmentation::start_epoch(int64_t epoch, int64_t batch) {
  const Recipe& recipe = context_.recipe;
  const int workers =
      recipe.data.workers > 0 ? static_cast<int>(recipe.data.workers) : std::max(1, context_.threads / 2);
  drawn_.reset();
  order_ = data::epoch_order(data_.samples, true, recipe.seed, epoch);
  const int64_t size = std::ssize(order_), first = std::min(size, batch * recipe.batch_size);
  drawn_.emplace(
      static_cast<size_t>(size - first),
      [this, epoch, first](size_t i) {
        const int64_t at = first + static_cast<int64_t>(i);
        return draw_.draw(order_[static_cast<size_t>(at)], epoch, at);
      },
      data::PrefetchOptions{.threads = workers,
                            .in_flight = static_cast<size_t>(recipe.data.in_flight * recipe.batch_size)});
}

BatchResult Segmentation::train_batch(const BatchPosition& position, const Backward& backward) {
  const Clock::time_point start = Clock::now();
  std::vector<DrawnSample> batch;
  while (std::ssize(batch) < context_.recipe.batch_size) {
    std::optional<DrawnSample> sample = drawn_->next();
    if (!sample) break;  // the last batch of an epoch may be smaller
    batch.push_back(std::move(*sample));
  }
  waited_ += seconds_since(start);
  BatchResult result = step_.accumulate(std::move(batch), backward);
  // After a resume, the samples count only what was met again.
  result.skipped = std::max<int64_t>(0, samples_.unreadable() - position.skipped);
  return result;
}

// The model as it is, compiled for inference.
sam::Predictor Segmentation::predictor() const {
  nn::CopiedParams params(prepared_.model);
  return sam::Predictor(models::Sam(prepared_.model.config(), ParamSource(params)), {.threads = context_.threads});
}

Measurement Segmentation::measure(Split split, const std::function<void(int64_t, int64_t)>& progress) {
  const autograd::NoGrad no_grad;
  sam::MaskEvaluationOptions options{.exif = context_.recipe.data.exif};
  if (context_.recipe.data.unreadable == data::Unreadable::replace) {
    options.unreadable = [this](const std::string& message) { context_.log("skipped: " + message); };
  }
  options.progress = progress;
  const sam::MaskEvaluation found = sam::evaluate_masks(predictor(), *data_.of(split), options);
  Measurement result;
  result.loss = 1 - (found.click_best + found.three_clicks + found.box) / 3;
  result.images = found.images;
  result.scores = scores_of(metrics().each, {found.click_best, found.box}, found.images);
  return result;
}

}  // namespace vitrail::train
