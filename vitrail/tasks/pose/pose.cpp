// SPDX-License-Identifier: Apache-2.0
// The key points of the persons in an image, as JSON, arrays and limbs over the image.
#include <algorithm>
#include <mutex>

#include "vitrail/tasks/detect/coco_results_internal.h"
#include "vitrail/tasks/option_model.h"
#include "vitrail/tasks/pose/person_detector.h"
#include "vitrail/tasks/pose/pose_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

constexpr const char* kBoxes = "boxes";

struct PoseOptions {
  std::string detector;
  std::vector<std::string> classes;
  std::optional<double> threshold;
  bool flip_test = false;
  int64_t dataset = 0;
  double keypoint_threshold = 0.3;
};

void describe_pose(Fields& fields, PoseOptions& options) {
  fields.text({"detector", "Object detector that finds the persons"}, options.detector);
  fields.texts(
      {"classes", "With detector: names or indices of its classes whose objects are persons (default: person)"},
      options.classes);
  fields.number({"threshold", "With detector: score above which an object is a person (default: 0.5)"},
                options.threshold, {0, 1});
  fields.boolean({"flip_test", "Use the mean of the heat maps of each person and of the mirror image"},
                 options.flip_test);
  fields.integer({"dataset",
                  "ViTPose++: the data set of the training whose expert is used: COCO 0, AiC 1, MPII 2, "
                  "AP-10K 3, APT-36K 4, COCO-WholeBody 5"},
                 options.dataset, 0, 63);
  fields.number({"keypoint_threshold", "Rendered image: score above which a key point is drawn"},
                options.keypoint_threshold, {.min = 0});
}

class PoseRequest : public Request {
 public:
  PoseRequest(const PoseModel& model, RequestOptions& options, const Setting& setting)
      : model_(&model), with_boxes_(setting.input_files.contains(kBoxes)) {
    describe_pose(options, options_);
    model_ = &model.of_dataset(options_.dataset);
    if (options_.flip_test) model_->check_flip_test();
    if (options_.detector.empty()) {
      if (!options_.classes.empty()) throw Error("classes", "a detector beside it", "none");
      if (options_.threshold) throw Error("threshold", "a detector beside it", "none");
      return;
    }
    if (with_boxes_) throw Error("detector", "no boxes beside it", "both");
    PersonDetectorOptions persons{.classes = options_.classes};
    if (options_.threshold) persons.threshold = *options_.threshold;
    detector_.emplace(option_model<DetectionModel>(setting, "detector", options_.detector, kDetectors), persons);
  }

  bool keeps_photo() const override { return true; }

  void compute(Item& item, const ImageEncoding* /*encoding*/, const ProgressCallback& /*progress*/) const override {
    std::vector<Pose> poses;
    for (const PersonBox& box : boxes_of(item)) poses.push_back(model_->pose(item.photo, box, options_.flip_test));
    std::ranges::stable_sort(poses, std::greater{}, &Pose::score);
    item.value = std::move(poses);
  }

  void track(Item& item, analysis::ByteTracker& tracker, int64_t frames) const override {
    auto& poses = std::any_cast<std::vector<Pose>&>(item.value);
    std::vector<analysis::ScoredBox> boxes;
    for (const Pose& pose : poses) {
      const auto& [left, top, width, height] = pose.box.box;
      boxes.push_back({{static_cast<float>(left), static_cast<float>(top), static_cast<float>(left + width),
                        static_cast<float>(top + height)},
                       static_cast<float>(pose.box.score)});
    }
    const std::vector<std::optional<int64_t>> tracks = tracker.update(boxes, frames);
    for (size_t i = 0; i < poses.size(); ++i) poses[i].track = tracks[i];
  }

  std::string json(const Item& item) const override { return poses_json(item.name, model_->skeleton(), of(item)); }
  std::vector<Output> outputs() const override { return {{"keypoints", {}}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return poses_array(model_->skeleton(), of(item)); }
  image::Image render(const Item& item) const override {
    return poses_overlay(item.photo, model_->skeleton(), of(item), options_.keypoint_threshold);
  }
  std::vector<uint8_t> file(const Item& item, const std::string& /*kind*/) const override {
    const std::string text = coco_poses(item.name, of(item));
    return {text.begin(), text.end()};
  }

 private:
  static const std::vector<Pose>& of(const Item& item) { return std::any_cast<const std::vector<Pose>&>(item.value); }

  // Without boxes the image is one person.
  std::vector<PersonBox> boxes_of(const Item& item) const {
    if (detector_) return detector_->boxes(item.photo, *encoding_by(detector_->model(), item));
    if (!with_boxes_)
      return {{.box = {0, 0, static_cast<double>(item.photo.width), static_cast<double>(item.photo.height)}}};
    std::vector<PersonBox> boxes = boxes_in(item.input_files.at(kBoxes))->of(item.name);
    for (const PersonBox& each : boxes) {
      if (overlaps(each, item.photo)) continue;
      const auto& [left, top, width, height] = each.box;
      throw Error(kBoxes, str("boxes that overlap the image of ", item.photo.width, "×", item.photo.height),
                  str("[", left, ", ", top, ", ", width, ", ", height, "]"));
    }
    return boxes;
  }

  // The file of the last image is read once: it may be that of all.
  std::shared_ptr<const PersonBoxes> boxes_in(const std::shared_ptr<const std::string>& content) const {
    const std::lock_guard lock(mutex_);
    if (content != content_) {
      boxes_ = std::make_shared<const PersonBoxes>(*content);
      content_ = content;
    }
    return boxes_;
  }

  const PoseModel* model_;
  bool with_boxes_;
  PoseOptions options_;
  std::optional<PersonDetector> detector_;  // unset: boxes of a file, or the image
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const std::string> content_;
  mutable std::shared_ptr<const PersonBoxes> boxes_;  // those of content_
};

}  // namespace

Task pose_task() {
  return {.name = "pose",
          .model = "a pose estimator (ViTPose)",
          .help = "Find the key points of persons",
          .describe = describe_defaults<PoseOptions, describe_pose>,
          .input_files = {{kBoxes, "Boxes of the persons, COCO's JSON of annotations or results (default: the image)"}},
          .can_render = true,
          .can_track = true,
          .files = {coco_results_kind()},
          .model_options = false,
          .fits = is_model<PoseModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<PoseRequest>(as_model<PoseModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
