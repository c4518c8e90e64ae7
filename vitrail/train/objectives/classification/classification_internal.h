// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objectives of images with a class or several labels.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/train/objectives/classification/evaluation_internal.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/classification/training_step_internal.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/run/unreadable_images_internal.h"

namespace vitrail::train {

// Adds a line for each setting of a classifier's recipe that does not go with another one.
void check_classifier_recipe(const Recipe& recipe, std::vector<std::string>& problems);

// What learning a classifier has in common: labelled images, a model for their classes, accuracies and the report.
class Classifier : public Objective {
 public:
  // Throws Error as open_data() and prepare_model() do.
  Classifier(const ObjectiveContext& context, const DataRecipe& data);

  nn::Module& model() override { return prepared_.model; }
  std::string config_json() const override { return models::write_model_config(prepared_.config); }
  int64_t size(Split split) const override { return subset(split).size(); }
  std::string name(Split split) const override { return subset(split).name; }
  bool holds_out() const override { return data_.validation.dataset == data_.train.dataset; }
  std::vector<ImageSet> image_sets() const override;
  std::string preprocessing() const override;
  std::vector<std::string> classes() const override { return data_.classes; }
  const Metrics& metrics() const override { return metrics_; }
  Measurement measure(Split split, const std::function<void(int64_t, int64_t)>& progress) override;
  bool reports_details() const override { return true; }
  std::string subject() const override { return prepared_.config.architecture; }
  std::string usage() const override { return "classify -m {} IMAGE"; }
  void add_section(const Measurement& measurement, Split split, Report& report) override;

 protected:
  const Subset& subset(Split split) const;
  std::vector<std::string> introduction_of(const std::string& doing) const;

  const ObjectiveContext context_;
  RunData data_;
  Metrics metrics_;
  PreparedModel prepared_;
  data::LoaderOptions options_;  // those of the training loader
  UnreadableImages unreadable_;  // that this process met

 private:
  image::EvalTransform set_preprocessing();

  std::vector<Gallery> galleries_;  // training images in the report
};

// Classification by gradient descent, of one class or several labels per image, also by distillation.
class Classification : public Classifier {
 public:
  // Throws Error for fewer training images than a batch has.
  explicit Classification(const ObjectiveContext& context);

  std::vector<std::string> frozen() const override;
  std::vector<std::string> introduction() const override;
  int64_t batches() const override { return loader_.steps_per_epoch(); }
  void start_epoch(int64_t epoch, int64_t batch) override { loader_.start(epoch, batch); }
  BatchResult train_batch(const BatchPosition& position, const Backward& backward) override;
  std::string model_card(const ReportInput& input) const override;
  double waited_seconds() const override { return loader_.waited_seconds(); }
  std::vector<Score> begin(const SolveProgress& progress) override;
  // begin() has set the head of a linear probe.
  bool keeps_start() const override { return starts_from_probe_; }
  void end_epoch() override { unreadable_.require_classes(data_, context_.recipe.data); }

 private:
  const Subset& checked_train_set() const;
  std::unique_ptr<Teacher> make_teacher() const;

  data::Loader loader_;
  TrainingStep step_;
  bool starts_from_probe_ = false;
};

}  // namespace vitrail::train
