// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/eval/detection_evaluation.h"

#include <algorithm>

#include "apps/vitrail/eval/object_evaluation.h"
#include "apps/vitrail/eval/object_results.h"
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/unicode_names_internal.h"
#include "vitrail/image/decode.h"

namespace vitrail::app {
namespace {

data::ObjectSet open_set(const EvalCommandOptions& options, bool without_images, bool keypoints) {
  return data::open_object_set(
      options.dataset,
      {.split = options.split, .cut = false, .keypoints = keypoints, .without_images = without_images});
}

// The class of the set that each class of the model is, by its name; −1: none.
std::vector<int64_t> classes_of_set(const std::vector<std::string>& names, const data::ObjectSet& set,
                                    const std::string& model) {
  std::vector<int64_t> classes;
  std::vector<bool> known(set.class_names.size());
  for (const std::string& name : names) {
    const auto exact = std::ranges::find(set.class_names, name);
    const auto found = exact != set.class_names.end()
                           ? exact
                           : std::ranges::find(set.class_names, data::comparison_key(name), data::comparison_key);
    classes.push_back(found == set.class_names.end() ? -1 : found - set.class_names.begin());
    if (found != set.class_names.end()) known[static_cast<size_t>(classes.back())] = true;
  }
  std::vector<std::string> unknown;
  for (size_t i = 0; i < known.size(); ++i) {
    if (!known[i]) unknown.push_back("'" + set.class_names[i] + "'");
  }
  constexpr size_t kListed = 5;
  if (unknown.size() == known.size()) {
    throw Error(set.where, "classes of the model " + model + ", such as " + join_first(kListed, names),
                join_first(kListed, unknown));
  }
  if (!unknown.empty()) {
    print_warning(str("the model does not know ", unknown.size(), " of the ", known.size(),
                      " classes, whose objects it ", "cannot find: ", join_first(kListed, unknown)));
  }
  return classes;
}

void show_results(const ObjectEvaluation& evaluation, const data::ObjectSet& set, const EvalCommandOptions& options,
                  const GlobalOptions& global, size_t failures = 0) {
  if (!options.report.empty())
    evaluation.write_report(options.report, data::summary(set, options.dataset), global.command_line);
  if (options.format == "json") {
    nlohmann::ordered_json json = evaluation.json();
    if (failures > 0) json["unreadable"] = failures;
    print_json(json);
  } else {
    evaluation.print();
  }
}

void refuse_other_options(const EvalCommandOptions& options, const char* what_it_does) {
  EvalCommandOptions others = options;
  others.report.clear();  // objects have one too
  refuse_classifier_options(others, what_it_does);
  refuse_label_map_options(options);
}

}  // namespace

int evaluate_detector(const tasks::DetectionModel& model, const NamedModel& named, const EvalCommandOptions& options,
                      const GlobalOptions& global) {
  refuse_other_options(options, "finds objects");
  refuse_model_options(options.model, "an object detector");
  const data::ObjectSet set = open_set(options, false, false);
  const std::vector<int64_t> classes = classes_of_set(model.class_names(), set, named.name);
  if (!options.report.empty()) const AtomicFile writable(options.report);  // throws before the images are read
  if (!global.quiet) print_note("vitrail: evaluating " + data::summary(set, options.dataset));
  const image::DecodeOptions decoding{.mode = model.color_mode(), .apply_exif = options.images.exif};
  const ImageSource source{.count = set.images.size(),
                           .path = [&](size_t i) -> std::optional<std::string> {
                             if (i >= set.images.size()) return std::nullopt;
                             return set.images[i].path;
                           },
                           .read = [&](size_t i) { return image::read_image(set.images[i].path, decoding); }};
  const ImageRun run{.compute = [&](tasks::Item& item) {
    item.value = model.detections(*model.encode(item.photo), 0);  // all: the curves need those with low scores too
  }};
  ObjectEvaluation evaluation(set, {.boxes = true});
  const size_t failures = run_images(source, run, 1, global, [&](Outcome& outcome) {
    if (!outcome.error.empty()) return;
    std::vector<FoundObject> found;
    for (const tasks::Detection& each : std::any_cast<const tasks::Detections&>(outcome.item.value)) {
      const int64_t category = classes.at(static_cast<size_t>(each.index));
      if (category >= 0) found.push_back({category, each.score, {each.box[0], each.box[1], each.box[2], each.box[3]}});
    }
    evaluation.add(outcome.index, outcome.item.width, outcome.item.height, found);
  });
  if (evaluation.images() == 0) throw Error(options.dataset, "images that can be read", "none");
  show_results(evaluation, set, options, global, failures);
  return failures == 0 ? 0 : 1;
}

int evaluate_results(const EvalCommandOptions& options, const GlobalOptions& global) {
  refuse_other_options(options, "is a file of results");
  data::ObjectSet set = open_set(options, options.report.empty(), false);
  ObjectResults results = read_object_results(options.detections, set);
  if (results.kinds.keypoints) {
    set = open_set(options, options.report.empty(), true);  // COCO has them in files of their own
    results = read_object_results(options.detections, set);
  }
  ObjectEvaluation evaluation(set, results.kinds);
  for (size_t i = 0; i < set.images.size(); ++i)
    evaluation.add(i, set.images[i].width, set.images[i].height, results.images[i]);
  if (!options.report.empty() && !results.kinds.boxes)
    throw Error(options.detections, "boxes, for --report", "results without bbox");
  show_results(evaluation, set, options, global);
  return 0;
}

}  // namespace vitrail::app
