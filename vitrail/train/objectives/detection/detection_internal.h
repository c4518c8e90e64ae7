// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objective "detect": objects with boxes, found by RF-DETR's projector and decoder on a Vision Transformer.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/analysis/coco_metrics.h"
#include "vitrail/train/objectives/detection/detection_draw_internal.h"
#include "vitrail/train/objectives/detection/detection_model_internal.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/objectives/sample_stream_internal.h"

namespace vitrail::train {

// COCO's average precision at an IoU of 0.5, and its mean over ten IoUs from 0.5 to 0.95.
const Metrics& detection_metrics();

// An image and how well its objects are found.
struct BoxAgreement {
  double f1 = 0;      // counts boxes with scores above 0.5 and IoUs above 0.5
  int64_t image = 0;  // its index in the dataset
};

// Measurement::details of an evaluation.
struct BoxEvaluation {
  analysis::CocoMetrics metrics;
  std::vector<BoxAgreement> worst{};  // the lowest F1 first
};

class Detection : public Objective {
 public:
  explicit Detection(const ObjectiveContext& context);

  nn::Module& model() override { return prepared_.model; }
  std::vector<std::string> frozen() const override { return prepared_.frozen; }
  std::string config_json() const override { return models::write_rf_detr_config(prepared_.model.config()); }
  int64_t size(Split split) const override { return data_.size(split); }
  std::string name(Split split) const override { return data_.name(split); }
  bool holds_out() const override { return holds_out_; }
  std::vector<ImageSet> image_sets() const override;
  std::string preprocessing() const override;
  std::vector<std::string> classes() const override { return data_.classes; }
  std::vector<std::string> introduction() const override;
  int64_t batches() const override;
  void start_epoch(int64_t epoch, int64_t batch) override;
  BatchResult train_batch(const BatchPosition& position, const Backward& backward) override;
  double waited_seconds() const override { return waited_; }
  const Metrics& metrics() const override { return detection_metrics(); }
  // The loss is the mean over the images, of the last layer's outputs.
  Measurement measure(Split split, const std::function<void(int64_t, int64_t)>& progress) override;
  bool reports_details() const override { return true; }
  std::string subject() const override { return prepared_.model.config().architecture; }
  std::string usage() const override { return "detect -m {} IMAGE"; }
  void add_section(const Measurement& measurement, Split split, Report& report) override;
  std::string model_card(const ReportInput& input) const override;

 private:
  // An augmented sample; no values for an unreadable one.
  struct Drawn {
    std::vector<float> image{};  // [C, S, S]
    DetectionTargets targets{};
  };
  // What the model finds in an image, in pixels, the best one first.
  struct Found {
    int64_t index = 0;  // the class
    double score = 0;
    std::array<double, 4> box{};  // left, top, right, bottom
  };

  Drawn draw(int64_t image, int64_t epoch) const;
  std::vector<Found> found_in(const image::Image& image, const DetectorOutput& output) const;
  DetectorOutput predict(const image::Image& image) const;  // outputs of one image, without gradients
  double add_to(analysis::CocoMetrics& metrics, const ObjectSample& sample, const std::vector<Found>& found,
                int64_t image) const;

  const ObjectiveContext context_;
  ObjectData data_;
  bool holds_out_;
  PreparedDetector prepared_;
  image::EvalTransform transform_;  // for images that are not augmented
  ObjectSamples samples_;
  ObjectAugmentation augmentation_;
  double waited_ = 0;  // seconds for samples
  // Destroyed first: its threads use the others.
  SampleStream<Drawn> drawn_{context_, [this](int64_t image, int64_t epoch) { return draw(image, epoch); }};
};

}  // namespace vitrail::train
