// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/families/family.h"

#include <algorithm>
#include <filesystem>

#include "apps/vitrail/anomaly/anomaly_family.h"
#include "apps/vitrail/eval/depth_evaluation.h"
#include "apps/vitrail/eval/detection_evaluation.h"
#include "apps/vitrail/families/network_family.h"
#include "apps/vitrail/inspect/inspect_images.h"
#include "apps/vitrail/label_map/label_map_family.h"
#include "apps/vitrail/segment/segment_family.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::app {
namespace {

constexpr ModelFamily kFamilies[] = {
    {"segment_anything", inspect_segmentation, bench_segmentation, evaluate_segmentation, convert_segmentation},
    {"anomaly", inspect_bank, bench_bank, evaluate_bank, convert_bank},
    {"eomt", inspect_network, bench_network, evaluate_label_maps, convert_network},
    {"semantic", inspect_network, bench_network, evaluate_label_maps, convert_network},
    {"depth", inspect_network, bench_network, evaluate_depth, convert_network},
    {"vit", inspect_image_model, bench_image_model, evaluate_image_model, convert_image_model},
};
// Families without a row, whose models run by their task.
constexpr ModelFamily kAnyNetwork{"", inspect_network, bench_network, evaluate_network, convert_network};

}  // namespace

bool is_configuration(const std::string& text) {
  const std::filesystem::path path = text;
  std::error_code unreadable;
  return path.extension() == ".json" ||
         (tasks::family_of_architecture(text) && !std::filesystem::exists(path, unreadable));
}

NamedModel open_named(const std::string& name) {
  if (is_configuration(name)) return {name, std::nullopt};
  return {name, models::ModelFiles(name)};
}

const ModelFamily& family_of(const NamedModel& model) {
  const tasks::Family* const family =
      model.files ? &tasks::family_of(*model.files) : tasks::family_of_architecture(model.name);
  const std::string_view name = family ? family->name : "vit";  // a config.json alone
  const auto* const row = std::ranges::find(kFamilies, name, &ModelFamily::name);
  return row == std::end(kFamilies) ? kAnyNetwork : *row;
}

tasks::Network network_of(const tasks::LoadedModel& model, const std::string& name) {
  if (auto network = model.network()) return *network;
  throw Error(name, "a model that this command takes apart", model.family() + ", which runs by its task");
}

int evaluate_network(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global) {
  const auto loaded = tasks::open_model(*model.files, {.model = session_options_of({}, global)});
  if (tasks::is_model<tasks::DetectionModel>(*loaded))
    return evaluate_detector(tasks::as_model<tasks::DetectionModel>(*loaded), model, options, global);
  if (tasks::is_model<tasks::PoseModel>(*loaded))
    return evaluate_poses(tasks::as_model<tasks::PoseModel>(*loaded), options, global);
  throw Error(model.name,
              "a model that can be evaluated: " + join(kFamilies, ", ", &ModelFamily::name) +
                  ", an object detector, or a pose estimator",
              "a model that runs by its task");
}

}  // namespace vitrail::app
