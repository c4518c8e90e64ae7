// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objective "segment": Segment Anything on images with instance masks (Kirillov et al. 2023).  It trains the prompt
// encoder and the mask decoder, and with train_encoder the image encoder, with simulated clicks, boxes
// and corrections.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/loader/ordered_prefetch.h"
#include "vitrail/sam/predictor.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/objectives/segmentation/segment_data_internal.h"
#include "vitrail/train/objectives/segmentation/segment_draw_internal.h"
#include "vitrail/train/objectives/segmentation/segment_model_internal.h"
#include "vitrail/train/objectives/segmentation/segment_step_internal.h"

namespace vitrail::train {

// The mean IoU for one click (the best of the masks) and that for a box.
const Metrics& segmentation_metrics();

class Segmentation : public Objective {
 public:
  explicit Segmentation(const ObjectiveContext& context);

  nn::Module& model() override { return prepared_.model; }
  std::vector<std::string> frozen() const override { return prepared_.frozen; }
  std::string config_json() const override { return models::write_sam_config(prepared_.model.config()); }
  int64_t size(Split split) const override { return data_.size(split); }
  std::string name(Split split) const override { return data_.name(split); }
  std::vector<ImageSet> image_sets() const override;
  std::string preprocessing() const override;
  std::vector<std::string> introduction() const override;
  int64_t batches() const override;
  void start_epoch(int64_t epoch, int64_t batch) override;
  BatchResult train_batch(const BatchPosition& position, const Backward& backward) override;
  double waited_seconds() const override { return waited_; }
  const Metrics& metrics() const override { return segmentation_metrics(); }
  // The loss is 1 − the mean of the scores and of the IoU for three clicks.
  Measurement measure(Split split, const std::function<void(int64_t, int64_t)>& progress) override;
  std::string subject() const override { return "Segment Anything"; }
  std::string usage() const override { return "segment -m {} IMAGE --point X,Y"; }
  void add_section(const Measurement& measurement, Split split, Report& report) override;
  std::string model_card(const ReportInput& input) const override;

 private:
  sam::Predictor predictor() const;

  const ObjectiveContext context_;
  SegmentData data_;
  PreparedSam prepared_;
  SegmentSamples samples_;
  SegmentDraw draw_;
  SegmentStep step_;
  std::vector<int64_t> order_;                               // indices of the samples in this epoch
  double waited_ = 0;                                        // seconds for samples
  std::optional<data::OrderedPrefetch<DrawnSample>> drawn_;  // destroyed first: its threads use the others
};

}  // namespace vitrail::train
