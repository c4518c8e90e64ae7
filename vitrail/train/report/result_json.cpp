// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report/result_json.h"

#include <nlohmann/json.hpp>

#include "vitrail/data/augment/interval_json_internal.h"
#include "vitrail/train/objectives/multi_label_internal.h"

namespace vitrail::train {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(Progress::Phase phase) {
  switch (phase) {
    case Progress::Phase::train:
      return "train";
    case Progress::Phase::validate:
      return "validate";
    case Progress::Phase::test:
      return "test";
    case Progress::Phase::features:
      return "features";
    case Progress::Phase::search:
      return "search";
  }
  return "";
}

}  // namespace

std::string result_json(const TrainingResult& result) {
  const MetricNames names = result.segmentation ? segmentation_metric_names() : metric_names(result.multi_label);
  const std::string first = names.first, second = names.second;
  Json json{{"epochs", result.epoch},
            {"steps", result.step},
            {"held_out_" + first, nullptr},
            {"best_epoch", nullptr},
            {"seconds", result.seconds}};
  // Only an accuracy has an interval that follows from the number of images.
  const bool has_intervals = !result.segmentation && !result.multi_label;
  const auto add = [&](const std::string& name, double value, int64_t images) {
    json[name] = value;
    if (has_intervals) json[name + "_interval"] = data::interval_json(value, images);
  };
  if (result.best_epoch > 0) json["best_epoch"] = result.best_epoch;
  if (result.best_top1) {
    add("held_out_" + first, *result.best_top1, result.validation_images);
    json["held_out_images"] = result.validation_images;
  }
  if (const auto& validated = result.cross_validated) {
    add("cross_validated_top1", validated->top1, validated->images);
    json["cross_validated_images"] = validated->images;
  }
  if (result.tested) {
    add("test_" + first, result.test_top1, result.test_images);
    add("test_" + second, result.test_top5, result.test_images);
    json["test_images"] = result.test_images;
  }
  if (result.skipped_images > 0) json["skipped_images"] = result.skipped_images;
  if (result.skipped_steps > 0) json["skipped_steps"] = result.skipped_steps;
  if (result.processes > 1) {
    json["processes"] = result.processes;
    json["exchange_seconds"] = result.communication.seconds;
    json["exchange_overlapped_seconds"] = result.communication.overlapped;
    json["exchange_waited_seconds"] = result.communication.waited;
  }
  return json.dump();
}

std::string progress_json(const Progress& p) {
  return Json{{"phase", name_of(p.phase)},
              {"epoch", p.epoch},
              {"epochs", p.epochs},
              {"step", p.step},
              {"steps", p.steps},
              {"loss", p.loss},
              {"accuracy", p.accuracy},
              {"images_per_second", p.images_per_second},
              {"seconds_left", p.seconds_left}}
      .dump();
}

std::string epoch_json(const EpochResult& e) {
  Json json{{"epoch", e.epoch},
            {"step", e.step},
            {"train_loss", e.train_loss},
            {"train_top1", e.train_top1},
            {"val_loss", nullptr},
            {"val_top1", nullptr},
            {"best", e.best},
            {"seconds", e.seconds}};
  if (e.validated) {
    json["val_loss"] = e.val_loss;
    json["val_top1"] = e.val_top1;
  }
  return json.dump();
}

}  // namespace vitrail::train
