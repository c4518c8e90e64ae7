// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objective "semantic": a class for each pixel of images with label maps, by a head on the patches of a Vision
// Transformer, which is frozen unless train_backbone is set.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/analysis/label_map.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/objectives/sample_stream_internal.h"
#include "vitrail/train/objectives/semantic/semantic_draw_internal.h"
#include "vitrail/train/objectives/semantic/semantic_model_internal.h"

namespace vitrail::train {

// The mean IoU over the classes, and the share of pixels with the right class.
const Metrics& semantic_metrics();

// An image and how well its map is predicted.
struct MapAgreement {
  double mean_iou = 0;  // over the classes of this image
  int64_t image = 0;    // its index in the dataset
};

// Measurement::details of an evaluation.
struct MapEvaluation {
  analysis::LabelMapMetrics pixels;
  std::vector<MapAgreement> worst{};  // the lowest mean IoU first
};

class Semantic : public Objective {
 public:
  explicit Semantic(const ObjectiveContext& context);

  nn::Module& model() override { return prepared_.model; }
  std::vector<std::string> frozen() const override { return prepared_.frozen; }
  std::string config_json() const override { return models::write_semantic_config(prepared_.model.config()); }
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
  // Sets the statistics of the batch normalisation.
  std::vector<Score> begin(const SolveProgress& progress) override;
  const Metrics& metrics() const override { return semantic_metrics(); }
  // The loss is the mean over the images, at the size of the model's input; the scores are at the images' size.
  Measurement measure(Split split, const std::function<void(int64_t, int64_t)>& progress) override;
  bool reports_details() const override { return true; }
  std::string subject() const override { return prepared_.model.config().architecture; }
  std::string usage() const override { return "segment -m {} IMAGE"; }
  void add_section(const Measurement& measurement, Split split, Report& report) override;
  std::string model_card(const ReportInput& input) const override;

 private:
  // An augmented sample; no values for an unreadable one.
  struct Drawn {
    std::vector<float> image{};     // [C, H, W]
    std::vector<int64_t> labels{};  // [H, W]
  };

  Drawn draw(int64_t image, int64_t epoch) const;
  Tensor logits_of(const image::Image& image) const;
  void use(bool training);

  const ObjectiveContext context_;
  SemanticData data_;
  bool holds_out_;
  PreparedSegmenter prepared_;
  image::EvalTransform transform_;  // for images that are not augmented
  MapSamples samples_;
  MapAugmentation augmentation_;
  Tensor class_weights_;  // undefined: none
  double waited_ = 0;     // seconds for samples
  // Destroyed first: its threads use the others.
  SampleStream<Drawn> drawn_{context_, [this](int64_t image, int64_t epoch) { return draw(image, epoch); }};
};

}  // namespace vitrail::train
