// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/label_map/label_map_family.h"

#include <cmath>

#include "apps/vitrail/label_map/label_map_runs.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/analysis/label_map.h"
#include "vitrail/base/error.h"
#include "vitrail/data/datasets/panoptic_set.h"

namespace vitrail::app {
namespace {

nlohmann::ordered_json number(double value) {
  return std::isnan(value) ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

void print_report(const analysis::LabelMapMetrics& metrics, const std::vector<std::string>& names, size_t images,
                  size_t failures, bool json) {
  nlohmann::ordered_json report{{"images", images},
                                {"pixels", metrics.pixels()},
                                {"miou", number(metrics.mean_iou())},
                                {"pixel_accuracy", number(metrics.pixel_accuracy())},
                                {"mean_accuracy", number(metrics.mean_accuracy())}};
  if (failures > 0) report["unreadable"] = failures;
  if (!json) {
    for (const auto& [name, value] : report.items()) print_output("{:16s} {}\n", name, value.dump());
  }
  auto& classes = report["classes"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < names.size(); ++i) {
    const double iou = metrics.iou(static_cast<int64_t>(i)), accuracy = metrics.accuracy(static_cast<int64_t>(i));
    if (json) {
      classes.push_back({{"index", i}, {"label", names[i]}, {"iou", number(iou)}, {"accuracy", number(accuracy)}});
    } else if (!std::isnan(iou)) {
      print_output("IoU {:.4f}  accuracy {:.4f}  {}\n", iou, accuracy, escaped(names[i]));
    }
  }
  if (json) print_json(report);
}

}  // namespace

std::vector<std::string> wanted_splits(const EvalCommandOptions& options) {
  if (!options.split.empty()) return {options.split};
  return {"test", "testing", "val", "validation"};
}

size_t run_label_maps(const tasks::LabelMapModel& model, tasks::LabelMapTask task,
                      const std::vector<std::string>& paths, const EvalCommandOptions& options,
                      const GlobalOptions& global,
                      const std::function<void(size_t index, const tasks::LabelMap& map)>& use) {
  const image::DecodeOptions decoding{.mode = model.color_mode(), .apply_exif = options.images.exif};
  const ImageSource source{.count = paths.size(),
                           .path = [&](size_t i) -> std::optional<std::string> {
                             if (i >= paths.size()) return std::nullopt;
                             return paths[i];
                           },
                           .read = [&](size_t i) { return image::read_image(paths[i], decoding); }};
  const ImageRun run{.compute = [&](tasks::Item& item) {
    const auto encoding = model.encode(item.photo);
    item.value = model.label_map(*encoding, task, item.height, item.width, {});
  }};
  size_t images = 0;
  const size_t failures = run_images(source, run, 1, global, [&](Outcome& outcome) {
    if (!outcome.error.empty()) return;
    use(outcome.index, std::any_cast<const tasks::LabelMap&>(outcome.item.value));
    ++images;
  });
  if (images == 0) throw Error(options.dataset, "images that can be read", "none");
  return failures;
}

int evaluate_label_maps(const NamedModel& named, const EvalCommandOptions& options, const GlobalOptions& global) {
  refuse_classifier_options(options, "gives each pixel a class");
  if (data::is_panoptic_set(options.dataset)) {
    refuse_label_map_options(options, "does not apply to a panoptic set, which has ids of segments");
    return evaluate_panoptic_set(named, options, global);
  }
  const data::LabelMapSet set = data::open_label_map_set(options.dataset, wanted_splits(options));
  const auto opened = tasks::open_model(*named.files, {.model = session_options_of(options.model, global)});
  const tasks::LabelMapModel& model = tasks::as_model<tasks::LabelMapModel>(*opened);
  std::vector<std::string> paths;
  for (const data::LabelMapSet::Sample& sample : set.samples) paths.push_back(sample.image);
  analysis::LabelMapMetrics metrics(static_cast<int64_t>(model.class_names().size()));
  const size_t failures = run_label_maps(
      model, tasks::LabelMapTask::semantic, paths, options, global, [&](size_t index, const tasks::LabelMap& map) {
        const std::string& path = set.samples[index].labels;
        metrics.add(data::read_label_map(path, map.width, map.height, options.label_maps), tasks::classes_of(map), path,
                    options.label_maps.ignored);
      });
  print_report(metrics, model.class_names(), paths.size() - failures, failures, options.format == "json");
  return failures == 0 ? 0 : 1;
}

}  // namespace vitrail::app
