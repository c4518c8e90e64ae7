// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/classification_internal.h"

#include "vitrail/base/error.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/train/objectives/classification/class_weights_internal.h"
#include "vitrail/train/objectives/classification/classifier_report_internal.h"
#include "vitrail/train/objectives/classification/head_features_internal.h"
#include "vitrail/train/objectives/classification/multi_label_internal.h"
#include "vitrail/train/run/all_gather_internal.h"
#include "vitrail/train/run/dataset_identity_internal.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/loader_setup_internal.h"
#include "vitrail/train/run/validation_change_internal.h"

namespace vitrail::train {
namespace {

RunData open_checked_data(const ObjectiveContext& context, const DataRecipe& recipe) {
  RunData data = open_data(recipe, architecture_of(context.recipe.model).in_chans);
  if (data.multi_label) check_multi_label(context.recipe, context.group.size());
  return data;
}

}  // namespace

Classifier::Classifier(const ObjectiveContext& context, const DataRecipe& data)
    : context_(context),
      data_(open_checked_data(context, data)),
      metrics_(classification_metrics(data_.multi_label, data_.classes.size())),
      prepared_(prepare_model(context.recipe.model, data_.classes, context.recipe.seed, data_.multi_label)),
      options_(training_options(context.recipe, data_, set_preprocessing(), prepared_.config.vit.in_chans,
                                context.threads, context.group)) {}

// Sets the model's preprocessing and returns it as a transform.
image::EvalTransform Classifier::set_preprocessing() {
  prepared_.config.preprocessing = preprocessing_of(context_.recipe.data, prepared_.config);
  return infer::transform_of(prepared_.config.preprocessing, "data");
}

const Subset& Classifier::subset(Split split) const {
  return split == Split::training ? data_.train : split == Split::validation ? data_.validation : data_.test;
}

std::vector<ImageSet> Classifier::image_sets() const { return train::image_sets(data_); }

std::string Classifier::preprocessing() const {
  return preprocessing_text(prepared_.config.preprocessing, context_.recipe.data.exif);
}

std::vector<std::string> Classifier::introduction_of(const std::string& doing) const {
  return {str(prepared_.config.architecture, ", ", prepared_.model.num_parameters(), " parameters, ",
              data_.classes.size(), " classes"),
          doing + data_.train.name, class_counts_text(data_)};
}

Measurement Classifier::measure(Split split, const std::function<void(int64_t, int64_t)>& progress) {
  data::Loader loader = evaluation_loader(subset(split), options_);
  ClassEvaluation evaluation = all_gather(
      context_.group, evaluate(prepared_.model, loader, static_cast<int64_t>(data_.classes.size()), progress));
  if (context_.group.is_rank_zero()) unreadable_.add_left_out(subset(split), evaluation.skipped);
  Measurement result;
  result.loss = evaluation.loss;
  result.images = evaluation.images;
  result.scores = scores_of(metrics_.each, {evaluation.top1, evaluation.top5}, evaluation.images);
  result.details = std::move(evaluation);
  return result;
}

void Classifier::add_section(const Measurement& measurement, Split split, Report& report) {
  if (galleries_.empty()) galleries_ = training_galleries(data_.train, options_);
  const auto* evaluation = std::any_cast<ClassEvaluation>(&measurement.details);  // null without held-out images
  add_classes(data_, evaluation ? *evaluation : ClassEvaluation{}, subset(split), galleries_, report);
}

Classification::Classification(const ObjectiveContext& context)
    : Classifier(context, context.recipe.data),
      loader_(checked_train_set().dataset, options_),
      step_(context.recipe, prepared_.model, context.group, make_teacher(), class_weights(context.recipe.loss, data_)) {
}

// The loader's own error would name a field that a recipe does not have.
const Subset& Classification::checked_train_set() const {
  const int64_t batch = context_.recipe.batch_size;
  if (batch > data_.train.size())
    throw Error("batch_size", str("at most the ", data_.train.size(), " training images"), str(batch));
  return data_.train;
}

std::unique_ptr<Teacher> Classification::make_teacher() const {
  const Recipe& recipe = context_.recipe;
  if (!recipe.loss.distillation) return nullptr;
  auto teacher = std::make_unique<Teacher>(recipe.loss.distillation->teacher, options_.transform, data_.classes,
                                           kernels::precision_from_name(recipe.precision));
  // Several processes do not cache logits: an image moves between them from epoch to epoch, and only rank 0 writes
  // files.
  if (recipe.loss.distillation->views > 0 && context_.group.size() == 1) {
    const std::string& shared = recipe.loss.distillation->cache;
    teacher->use_cache(shared.empty() ? context_.folder / "checkpoints" : std::filesystem::path(shared), recipe,
                       views_of(*recipe.loss.distillation), dataset_identity(data_.train.dataset));
  }
  return teacher;
}

std::vector<std::string> Classification::frozen() const {
  std::vector<std::string> frozen = context_.recipe.model.freeze;
  if (context_.recipe.model.linear_probe) frozen.push_back("regex:(?!head).*");  // names that do not begin with "head"
  return frozen;
}

std::vector<std::string> Classification::introduction() const {
  std::vector<std::string> lines = introduction_of("training on ");
  std::vector<std::string> notes = prepared_.notes;
  for (std::string& note : notes) note = "from " + context_.recipe.model.init + ": " + note;
  lines.insert(lines.begin() + 1, notes.begin(), notes.end());
  return lines;
}

std::string Classification::model_card(const ReportInput& input) const {
  return classifier_card(input, data_.classes, training_texts(context_.recipe, std::ssize(input.counters->history)));
}

// A model without pretraining has no baselines, and many images would take long.
std::vector<Score> Classification::begin(const SolveProgress& progress) {
  constexpr int64_t kMaxImages = 20'000;
  if (context_.recipe.model.init.empty() || data_.multi_label || data_.train.size() > kMaxImages) return {};
  const bool starts = context_.recipe.model.head == "probe" && prepared_.new_classes,
             compares = data_.validation.dataset && context_.group.size() == 1;
  if (!starts && !compares) return {};
  const infer::Session session = headless_session(prepared_.model, context_.threads, kernels::Precision::fp32);
  data::LoaderOptions complete = options_;  // each process reads all images
  complete.rank = 0, complete.ranks = 1;
  const auto features_of = [&](const Subset& subset) {
    data::Loader loader = evaluation_loader(subset, complete);
    return head_features(session, loader, [&](const data::Batch&, int64_t step) {
      progress(Progress::Phase::features, step, loader.steps_per_epoch());
    });
  };
  const auto classes = std::ssize(data_.classes);
  const HeadFeatures training = features_of(data_.train);
  const std::optional<analysis::LinearClassifier> probe =
      probe_of(training, classes, [&](int64_t done, int64_t total) { progress(Progress::Phase::search, done, total); });
  if (starts && probe) {
    set_head(prepared_, *probe);
    context_.group.broadcast_tensors(prepared_.model.named_parameters());
    starts_from_probe_ = true;
    context_.log("head: from a linear probe of the training images");
  }
  if (!compares) return {};
  const HeadFeatures validation = features_of(data_.validation);
  warn_of_near_duplicates(training, data_.train, validation, data_.validation, "validation");
  if (data_.test.dataset && data_.test.size() <= kMaxImages)
    warn_of_near_duplicates(training, data_.train, features_of(data_.test), data_.test, "test");
  return baselines_of(training, validation, classes, probe);
}

BatchResult Classification::train_batch(const BatchPosition& position, const Backward& backward) {
  const data::Batch batch = loader_.next().value();
  unreadable_.add(data_.train, batch);
  BatchResult result = step_.accumulate(batch, position, backward);
  result.skipped = static_cast<int64_t>(batch.skipped.size());
  return result;
}

}  // namespace vitrail::train
