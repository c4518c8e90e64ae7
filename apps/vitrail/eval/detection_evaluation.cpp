// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/eval/detection_evaluation.h"

#include <algorithm>
#include <functional>
#include <map>

#include "apps/vitrail/eval/object_evaluation.h"
#include "apps/vitrail/eval/object_results.h"
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/unicode_names_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/tasks/option_model.h"
#include "vitrail/tasks/pose/person_detector.h"

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

// Whether all objects have masks to compare.
bool has_outlines(const data::ObjectSet& set) {
  return std::ranges::all_of(set.images, [](const data::LabelledImage& image) {
    return std::ranges::none_of(image.objects, [](const auto& object) { return object.outline.empty(); });
  });
}

// Those of an object; 0: none has any.
int64_t keypoint_count(const data::ObjectSet& set) {
  for (const data::LabelledImage& image : set.images) {
    for (const data::LabelledObject& object : image.objects) {
      if (!object.keypoints.empty()) return std::ssize(object.keypoints);
    }
  }
  return 0;
}

// The class of the set that persons are: the one of this name, or the only one.
int64_t person_class(const data::ObjectSet& set) {
  const std::string person = tasks::PersonBox().label;
  const auto named = std::ranges::find(set.class_names, person, data::comparison_key);
  if (named != set.class_names.end()) return named - set.class_names.begin();
  if (set.class_names.size() == 1) return 0;
  constexpr size_t kListed = 5;
  throw Error(set.where, "the class person", join_first(kListed, set.class_names));
}

// The boxes of the objects with key points, whose `category` is the class of the set.
std::vector<tasks::PersonBox> true_persons(const data::ObjectSet& set, size_t image, const image::Image& photo) {
  std::vector<tasks::PersonBox> boxes;
  for (const data::LabelledObject& object : objects_of(set, image, photo.width, photo.height)) {
    const auto& [left, top, right, bottom] = object.box;
    const bool has_points =
        std::ranges::any_of(object.keypoints, [](const data::KeyPoint& point) { return point.visibility > 0; });
    if (!object.crowd && has_points && left < right && top < bottom)
      boxes.push_back({.box = {left, top, right - left, bottom - top}, .category = object.index});
  }
  return boxes;
}

// Compares what a model finds in each image of a set with the objects there.
int evaluate_model(const data::ObjectSet& set, ObjectKinds kinds, const EvalCommandOptions& options,
                   const GlobalOptions& global,
                   const std::function<std::vector<FoundObject>(size_t image, const image::Image& photo)>& find) {
  if (!options.report.empty()) const AtomicFile writable(options.report);  // throws before the images are read
  if (!global.quiet) print_note("vitrail: evaluating " + data::summary(set, options.dataset));
  const image::DecodeOptions decoding{.mode = image::ColorMode::rgb, .apply_exif = options.images.exif};
  const ImageSource source{.count = set.images.size(),
                           .path = [&](size_t i) -> std::optional<std::string> {
                             if (i >= set.images.size()) return std::nullopt;
                             return set.images[i].path;
                           },
                           .read = [&](size_t i) { return image::read_image(set.images[i].path, decoding); }};
  std::map<std::string, size_t> positions;
  for (size_t i = 0; i < set.images.size(); ++i) positions.emplace(set.images[i].path, i);
  const ImageRun run{.compute = [&](tasks::Item& item) { item.value = find(positions.at(item.name), item.photo); }};
  ObjectEvaluation evaluation(set, kinds);
  const size_t failures = run_images(source, run, 1, global, [&](Outcome& outcome) {
    if (!outcome.error.empty()) return;
    evaluation.add(outcome.index, outcome.item.width, outcome.item.height,
                   std::any_cast<const std::vector<FoundObject>&>(outcome.item.value));
  });
  if (evaluation.images() == 0) throw Error(options.dataset, "images that can be read", "none");
  show_results(evaluation, set, options, global, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int evaluate_detector(const tasks::DetectionModel& model, const NamedModel& named, const EvalCommandOptions& options,
                      const GlobalOptions& global) {
  refuse_other_options(options, "finds objects");
  refuse_model_options(options.model, "an object detector");
  const data::ObjectSet set = open_set(options, false, false);
  const std::vector<int64_t> classes = classes_of_set(model.class_names(), set, named.name);
  const bool masks = model.gives_masks() && has_outlines(set);
  return evaluate_model(
      set, {.boxes = true, .masks = masks}, options, global, [&](size_t /*image*/, const image::Image& photo) {
        const auto encoding = model.encode(photo);
        // All objects: the curves need those with low scores too.
        tasks::Detections detections = model.detections(*encoding, 0);
        std::erase_if(detections, [&](const auto& each) { return classes.at(static_cast<size_t>(each.index)) < 0; });
        if (masks) model.add_masks(*encoding, detections);
        std::vector<FoundObject> found;
        for (tasks::Detection& each : detections) {
          found.push_back({.category = classes.at(static_cast<size_t>(each.index)),
                           .score = each.score,
                           .box = {each.box[0], each.box[1], each.box[2], each.box[3]},
                           .mask = std::move(each.mask)});
        }
        return found;
      });
}

int evaluate_poses(const tasks::PoseModel& model, const EvalCommandOptions& options, const GlobalOptions& global) {
  refuse_other_options(options, "finds key points");
  refuse_model_options(options.model, "a pose estimator");
  if (!options.report.empty()) throw CLI::ValidationError("--report", "is of boxes; the model finds key points");
  const data::ObjectSet set = open_set(options, false, true);
  const auto points = std::ssize(model.skeleton().keypoints), true_points = keypoint_count(set);
  if (points != true_points)
    throw Error(set.where, str("objects with the ", points, " key points of the model"), str(true_points));
  std::optional<tasks::PersonDetector> detector;
  if (!options.detector.empty()) {
    const char* const option = "--detector";
    detector.emplace(tasks::fitting_model<tasks::DetectionModel>(
                         tasks::open_option_model(option, options.detector, {.model = session_options_of({}, global)}),
                         option, tasks::kDetectors),
                     tasks::PersonDetectorOptions{.classes = options.classes, .option = "--classes"});
  }
  const int64_t person = detector ? person_class(set) : 0;
  return evaluate_model(set, {.keypoints = true}, options, global, [&](size_t image, const image::Image& photo) {
    std::vector<FoundObject> found;
    const auto boxes =
        detector ? detector->boxes(photo, *detector->model().encode(photo)) : true_persons(set, image, photo);
    for (const tasks::PersonBox& box : boxes) {
      const tasks::Pose pose = model.pose(photo, box, false);
      found.push_back({.category = detector ? person : box.category,
                       .score = static_cast<float>(pose.score()),
                       .keypoints = tasks::coco_keypoints(pose)});
    }
    return found;
  });
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
