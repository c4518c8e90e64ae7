// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report/result_json.h"

#include <nlohmann/json.hpp>

#include "vitrail/data/augment/interval_json_internal.h"

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

// The first score; `otherwise` if there is none.
Json first_of(const std::vector<Score>& scores, const Json& otherwise) {
  return scores.empty() ? otherwise : Json(scores.front().value);
}

}  // namespace

std::string result_json(const TrainingResult& result) {
  Json json{{"epochs", result.epoch},
            {"steps", result.step},
            {"held_out_" + result.metrics.at(0).name, nullptr},
            {"best_epoch", nullptr},
            {"seconds", result.seconds}};
  const auto add = [&](const std::string& prefix, const Score& score) {
    const std::string name = prefix + score.name;
    json[name] = score.value;
    if (score.unit == ScoreUnit::share) json[name + "_interval"] = data::interval_json(score.value, score.images);
  };
  if (result.best_epoch > 0 || result.start) json["best_epoch"] = result.best_epoch;
  if (result.best) {
    add("held_out_", *result.best);
    json["held_out_images"] = result.best->images;
  }
  if (result.start && result.last) add("last_", *result.last);
  if (result.retrained)
    json["retrained"] = {{"epochs", result.retrained->epochs}, {"images", result.retrained->images}};
  for (const Score& score : result.start_scores) add("start_", score);
  for (size_t i = 1; i < result.best_scores.size(); ++i) add("held_out_", result.best_scores[i]);
  for (const Score& score : result.baselines) json["baselines"][score.name] = score.value;
  if (result.cross_validated) {
    add("cross_validated_", *result.cross_validated);
    json["cross_validated_images"] = result.cross_validated->images;
  }
  if (result.test) {
    for (const Score& score : result.test->scores) add("test_", score);
    json["test_images"] = result.test->images;
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
              {"accuracy", first_of(p.scores, nullptr)},
              {"images_per_second", p.images_per_second},
              {"seconds_left", p.seconds_left}}
      .dump();
}

std::string epoch_json(const EpochResult& e) {
  Json json{{"epoch", e.epoch},
            {"step", e.step},
            {"train_loss", e.train.loss},
            {"train_top1", first_of(e.train.scores, 0.0)},
            {"val_loss", nullptr},
            {"val_top1", nullptr},
            {"best", e.best},
            {"seconds", e.seconds}};
  if (e.validation) {
    json["val_loss"] = e.validation->loss;
    json["val_top1"] = first_of(e.validation->scores, nullptr);
  }
  return json.dump();
}

}  // namespace vitrail::train
