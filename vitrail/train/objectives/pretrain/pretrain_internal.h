// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objective "pretrain": a Vision Transformer learns from images without labels.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/objectives/pretrain/pretrain_data_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_evaluation_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_recipe_internal.h"
#include "vitrail/train/report/report_internal.h"
#include "vitrail/train/run/unreadable_images_internal.h"

namespace vitrail::train {

// A model without a head, with the layers of a method as its child "pretrain".
class PretrainModel : public nn::Module {
 public:
  PretrainModel(models::VisionTransformer& model, nn::Module& layers) : model_(model), layers_(layers) {}
  std::string type() const override { return "PretrainModel"; }
  void visit(nn::Visitor& visitor) override {
    model_.visit(visitor);
    visitor.child("pretrain", layers_);
  }

 private:
  models::VisionTransformer& model_;
  nn::Module& layers_;
};

class Pretrain : public Objective {
 public:
  // Throws Error as open_unlabelled_data(), open_probe() and prepare_model() do.
  explicit Pretrain(const ObjectiveContext& context);

  nn::Module& model() override { return trained_; }
  std::vector<std::string> frozen() const override;
  std::vector<optim::RateScale> rate_scales() const override;
  std::string config_json() const override { return models::write_model_config(prepared_.config); }
  std::vector<nn::NamedTensor> saved(std::vector<nn::NamedTensor> parameters) const override;
  void write_beside(const std::filesystem::path& folder, const std::vector<nn::NamedTensor>& parameters) const override;
  int64_t size(Split split) const override { return subset(split).size(); }
  std::string name(Split split) const override { return subset(split).name; }
  std::vector<ImageSet> image_sets() const override;
  std::string preprocessing() const override;
  std::vector<std::string> introduction() const override;
  int64_t batches() const override { return loader_.steps_per_epoch(); }
  void start_epoch(int64_t epoch, int64_t batch) override { loader_.start(epoch, batch); }
  BatchResult train_batch(const BatchPosition& position, const Backward& backward) override;
  void end_step(double progress) override { method_->end_step(progress); }
  double waited_seconds() const override { return loader_.waited_seconds(); }
  const Metrics& metrics() const override { return metrics_; }
  // The loss is 1 − the first score; without a probe, that of the method on held-out images, if it has one.  Throws
  // Error if the features have collapsed since the start.
  Measurement measure(Split split, const std::function<void(int64_t, int64_t)>& progress) override;
  bool replaces(const Evaluation& evaluation, const Quality& best) const override;
  bool keeps_start() const override { return true; }
  void start_from(const Evaluation& start) override { start_ = start; }
  bool reports_details() const override { return true; }
  std::string subject() const override { return prepared_.config.architecture; }
  std::string usage() const override { return "embed -m {} IMAGES"; }
  void add_section(const Measurement& measurement, Split split, Report& report) override;
  std::string model_card(const ReportInput& input) const override;

 private:
  const Subset& subset(Split split) const;
  image::EvalTransform set_preprocessing();
  Tensor loss_of(data::Batch& batch, PretrainBatch position);
  bool measures_loss() const { return metrics_.validates_loss; }
  double held_out_loss();
  void set_training(bool on);
  const models::VisionTransformer& saved_model() const;
  bool take_layers();
  std::optional<data::Batch> held_out_batch(int64_t images) const;
  std::optional<Gallery> prediction_gallery();
  std::vector<Gallery> feature_galleries(const HeadFeatures& features, const std::string& when) const;
  double score_of(const Evaluation& evaluation, const std::string& name) const;
  void require_rank(const Evaluation& evaluation) const;

  const ObjectiveContext context_;
  RunData data_;
  std::optional<ProbeSets> probe_;
  PreparedModel prepared_;  // without a head
  Metrics metrics_;
  data::LoaderOptions options_;  // with one augmented view
  data::Loader loader_;
  std::unique_ptr<PretrainMethod> method_;
  PretrainModel trained_;
  FeatureEvaluation evaluation_;
  std::vector<int64_t> positions_;  // each image's place among the training images, or −1
  UnreadableImages unreadable_;
  std::optional<Evaluation> start_;
  std::vector<Gallery> start_galleries_;  // none in a resumed run
};

}  // namespace vitrail::train
