// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objective "contrastive": a dual model (CLIP, SigLIP) learns from pairs of images and texts.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/train/objectives/contrastive/contrastive_data_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_evaluation_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_model_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_recipe_internal.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/report/report_internal.h"
#include "vitrail/train/run/loader_setup_internal.h"
#include "vitrail/train/run/unreadable_images_internal.h"

namespace vitrail::train {

class Contrastive : public Objective {
 public:
  // Throws Error as open_dual_model(), open_pair_data(), open_zero_shot() and DualTexts do.
  explicit Contrastive(const ObjectiveContext& context);

  nn::Module& model() override { return model_; }
  std::vector<std::string> frozen() const override;
  std::string config_json() const override;
  std::vector<nn::NamedTensor> saved(std::vector<nn::NamedTensor> parameters) const override;
  void write_beside(const std::filesystem::path& folder, const std::vector<nn::NamedTensor>& parameters) const override;
  int64_t size(Split split) const override { return subset(split).size(); }
  std::string name(Split split) const override { return subset(split).name; }
  std::vector<ImageSet> image_sets() const override;
  std::string preprocessing() const override;
  std::vector<std::string> introduction() const override;
  int64_t batches() const override { return loader_.steps_per_epoch(); }
  void start_epoch(int64_t epoch, int64_t batch) override;
  BatchResult train_batch(const BatchPosition& position, const Backward& backward) override;
  void end_step(double progress) override;
  double waited_seconds() const override { return loader_.waited_seconds(); }
  const Metrics& metrics() const override { return metrics_; }
  // Measures the weights that are saved, which may be the average with the start.
  Measurement measure(Split split, const std::function<void(int64_t, int64_t)>& progress) override;
  bool keeps_start() const override { return true; }
  void start_from(const Evaluation& start) override { start_ = start; }
  bool reports_details() const override { return true; }
  std::string subject() const override { return opened_.config.architecture; }
  std::string usage() const override { return "zeroshot -m {} IMAGES --labels LABELS"; }
  void add_section(const Measurement& measurement, Split split, Report& report) override;
  std::string model_card(const ReportInput& input) const override;

 private:
  struct Progress;
  bool trains_text() const { return contrastive_of(context_.recipe).towers == "both"; }
  const Subset& subset(Split split) const;
  const CaptionTokens& tokens(Split split) const;
  Tensor batch_texts(const data::Batch& batch);
  Tensor embedded_texts(const std::vector<std::vector<int64_t>>& ids, const Progress& progress) const;
  Tensor fixed_texts(const CaptionTokens& captions) const;
  Tensor embedded_images(const Subset& images, std::vector<int64_t>& samples, const Progress& progress);
  PairEmbeddings embedded_pairs(Split split, const Progress& progress);
  double held_out_loss(const PairEmbeddings& pairs) const;
  double measured_zero_shot(const Progress& progress);
  int64_t evaluation_batches(Split split) const;
  Gallery gallery_of_start(const PairEmbeddings& pairs) const;

  const ObjectiveContext context_;
  const models::OpenedModel opened_;
  const models::DualLoss loss_;
  const DualTexts texts_;
  PairData data_;
  std::optional<ZeroShotSet> zero_shot_;
  const CaptionTokens tokens_;
  const std::optional<CaptionTokens> validation_tokens_, test_tokens_;  // set for other datasets
  std::vector<std::vector<int64_t>> label_ids_;                         // the texts of zero_shot_
  TrainedDual model_;
  const StartAverage average_;
  Metrics metrics_;
  data::LoaderOptions options_, evaluation_options_;
  data::Loader loader_;
  Tensor caption_embeddings_;  // set if the text tower is not trained
  int64_t epoch_ = 0;
  UnreadableImages unreadable_;
  std::optional<Evaluation> start_;
  std::optional<Gallery> start_gallery_;  // none in a resumed run
};

}  // namespace vitrail::train
