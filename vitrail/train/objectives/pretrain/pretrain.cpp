// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/pretrain/pretrain_internal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/model_files.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/precision.h"
#include "vitrail/train/objectives/classification/head_features_internal.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/loader_setup_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/run/validation_change_internal.h"

namespace vitrail::train {
namespace {

constexpr const char* kLayersFile = "pretrain.safetensors";  // beside the model's weights

std::optional<ProbeSets> probe_of(const Recipe& recipe, int64_t channels) {
  const std::string& path = pretrain_of(recipe).probe;
  return path.empty() ? std::nullopt : std::optional(open_probe(path, recipe.data, channels));
}

// A model that sees local views takes images of other sizes than its own.
ModelRecipe model_of(const Recipe& recipe) {
  ModelRecipe model = recipe.model;
  if (!pretrain_method_of(recipe).has_local_views || pretrain_of(recipe).local_views == 0) return model;
  auto args = nlohmann::json::parse(model.model_args.empty() ? "{}" : model.model_args);
  args["dynamic_img_size"] = true;
  model.model_args = args.dump();
  return model;
}

// The model's configuration.  Throws Error for a model without pooled features.
models::VisionTransformerConfig pooling_architecture(const ModelRecipe& model) {
  models::VisionTransformerConfig config = architecture_of(model);
  if (config.global_pool == models::GlobalPool::none) {
    throw Error("model", "a model that pools its tokens (--set model.model_args.global_pool=avg)",
                "one with global_pool \"\"");
  }
  return config;
}

std::vector<int64_t> positions_of(const Subset& train) {
  std::vector<int64_t> positions(static_cast<size_t>(train.dataset->size()), -1);
  for (size_t i = 0; i < train.samples.size(); ++i)
    positions[static_cast<size_t>(train.samples[i])] = static_cast<int64_t>(i);
  return positions;
}

// The options of the loader with the views of the method.
data::LoaderOptions with_views(const Recipe& recipe, const models::VisionTransformerConfig& config,
                               data::LoaderOptions options) {
  const auto& set_views = pretrain_method_of(recipe).set_views;
  if (set_views) set_views(recipe, config.patch_size[0], options);
  if (!options.views.empty()) options.augment.reset();
  return options;
}

// Held-out images, with the views of the method.
data::Loader held_out_loader(const Subset& held_out, const data::LoaderOptions& training) {
  data::LoaderOptions options = data::evaluation_options(training);
  options.batch_size *= options.ranks;
  options.rank = 0, options.ranks = 1;  // each process measures all images
  options.subset = held_out.samples;
  options.views = training.views;
  return {held_out.dataset, options};
}

}  // namespace

Pretrain::Pretrain(const ObjectiveContext& context)
    : context_(context),
      data_(open_unlabelled_data(context.recipe.data, pooling_architecture(context.recipe.model).in_chans)),
      probe_(probe_of(context.recipe, architecture_of(context.recipe.model).in_chans)),
      prepared_(prepare_model(model_of(context.recipe), {}, context.recipe.seed)),
      metrics_(pretrain_metrics(probe_.has_value(),
                                probe_ && has_linear_probe(*probe_, models::feature_width_of(prepared_.config.vit)),
                                pretrain_method_of(context.recipe))),
      options_(training_options(context.recipe, data_, set_preprocessing(), prepared_.config.vit.in_chans,
                                context.threads, context.group)),
      loader_(data_.train.dataset, with_views(context.recipe, prepared_.config.vit, options_)),
      method_(pretrain_method_of(context.recipe)
                  .make({.recipe = context_.recipe,
                         .model = prepared_.model,
                         .transform = options_.transform,
                         .images = data_.train,
                         .folder = context.folder,
                         .group = context.group})),
      trained_(prepared_.model, method_->layers()),
      evaluation_(data_.validation, probe_, options_),
      positions_(positions_of(data_.train)) {
  prepared_.model.checkpoint_blocks(context.recipe.model.activation_checkpointing);
  if (take_layers()) prepared_.notes.push_back(str("the layers behind the model: those of ", kLayersFile));
}

// Sets the model's preprocessing and returns it as a transform.
image::EvalTransform Pretrain::set_preprocessing() {
  prepared_.config.preprocessing = preprocessing_of(context_.recipe.data, prepared_.config);
  return infer::transform_of(prepared_.config.preprocessing, "data");
}

std::vector<std::string> Pretrain::frozen() const {
  std::vector<std::string> frozen = context_.recipe.model.freeze;
  for (const std::string& name : method_->frozen()) {
    if (std::ranges::count(frozen, name) == 0) frozen.push_back(name);
  }
  return frozen;
}

std::vector<nn::NamedTensor> Pretrain::saved(std::vector<nn::NamedTensor> parameters) const {
  const std::string prefix = method_->saved().prefix;
  std::vector<nn::NamedTensor> saved;
  for (nn::NamedTensor& parameter : parameters) {
    if (prefix.empty() ? parameter.name.starts_with("pretrain.") : !parameter.name.starts_with(prefix)) continue;
    saved.push_back({parameter.name.substr(prefix.size()), parameter.tensor});
  }
  return saved;
}

// The parts of the model are children of trained_, the model itself is none.
void Pretrain::set_training(bool on) {
  prepared_.model.train(on);
  trained_.train(on);
}

const models::VisionTransformer& Pretrain::saved_model() const {
  const models::VisionTransformer* saved = method_->saved().model;
  return saved ? *saved : prepared_.model;
}

void Pretrain::write_beside(const std::filesystem::path& folder, const std::vector<nn::NamedTensor>& parameters) const {
  if (!pretrain_method_of(context_.recipe).keeps_layers) return;
  std::vector<nn::NamedTensor> layers;
  for (const nn::NamedTensor& parameter : parameters) {
    if (parameter.name.starts_with("pretrain.")) layers.push_back(parameter);
  }
  write_weights(folder / kLayersFile, layers);
}

// Takes the layers of an earlier run that are beside the start, if they fit.  Returns whether it does.
bool Pretrain::take_layers() {
  const std::string& init = context_.recipe.model.init;
  if (init.empty() || !pretrain_method_of(context_.recipe).keeps_layers) return false;
  const std::filesystem::path file = models::ModelFiles(init).weights.front().parent_path() / kLayersFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return false;
  const auto checkpoint = weights::Checkpoint::open(file);
  const std::vector<nn::NamedTensor> layers = method_->layers().named_parameters();
  const bool fits = std::ranges::all_of(layers, [&](const nn::NamedTensor& layer) {
    const std::string name = "pretrain." + layer.name;
    return checkpoint.has(name) && checkpoint.info(name).shape == layer.tensor.shape();
  });
  if (!fits) return false;
  const autograd::NoGrad no_grad;
  for (const nn::NamedTensor& layer : layers) layer.tensor.copy_(checkpoint.tensor("pretrain." + layer.name));
  return true;
}

std::vector<optim::RateScale> Pretrain::rate_scales() const {
  return {{"pretrain.*", pretrain_of(context_.recipe).head_lr / context_.recipe.lr}};
}

const Subset& Pretrain::subset(Split split) const {
  return split == Split::training ? data_.train : split == Split::validation ? data_.validation : data_.test;
}

std::vector<ImageSet> Pretrain::image_sets() const { return train::image_sets(data_); }

std::string Pretrain::preprocessing() const {
  return preprocessing_text(prepared_.config.preprocessing, context_.recipe.data.exif);
}

std::vector<std::string> Pretrain::introduction() const {
  std::vector<std::string> lines{str(prepared_.config.architecture, ", ", prepared_.model.num_parameters(),
                                     " parameters, method ", pretrain_of(context_.recipe).method)};
  for (const std::string& note : prepared_.notes) lines.push_back("from " + context_.recipe.model.init + ": " + note);
  lines.push_back("training on " + data_.train.name + ", without labels");
  if (probe_) lines.push_back(str("measured by labels of ", probe_->train.name, ", on ", probe_->evaluated.name));
  return lines;
}

// Sets the labels to the positions among the training images.
Tensor Pretrain::loss_of(data::Batch& batch, PretrainBatch position) {
  for (size_t i = 0; i < batch.samples.size(); ++i)
    batch.labels.data<int64_t>()[i] = positions_[static_cast<size_t>(batch.samples[i])];
  const nn::RandomScope random(context_.recipe.seed, position.number, batch.positions);
  const ops::MixedPrecision precision(context_.recipe.precision == "bf16" ? DType::bf16 : DType::f32);
  return method_->loss(position);
}

BatchResult Pretrain::train_batch(const BatchPosition& position, const Backward& backward) {
  data::Batch batch = loader_.next().value();
  unreadable_.add(data_.train, batch);
  BatchResult local{.images = std::ssize(batch.samples)};
  local.skipped = std::ssize(batch.skipped);
  local.weight = static_cast<double>(local.images);
  if (local.images == 0) return local;
  set_training(true);
  prepared_.model.drop_patches_in_training(patch_drop_rate(context_.recipe, prepared_.config.vit, position.epochs));
  return backward(loss_of(batch, {.data = batch, .number = position.number, .epochs = position.epochs}), local);
}

// The mean over the images, which have the same views in each epoch.
double Pretrain::held_out_loss() {
  data::Loader loader = held_out_loader(data_.validation, loader_.options());
  loader.start(0);
  double sum = 0, images = 0;
  for (uint64_t number = 0; auto batch = loader.next(); ++number) {
    const auto count = static_cast<double>(batch->samples.size());
    if (count == 0) continue;
    sum += count * loss_of(*batch, {.data = *batch, .number = number, .held_out = true}).item<double>();
    images += count;
  }
  return sum / images;
}

double Pretrain::score_of(const Evaluation& evaluation, const std::string& name) const {
  return std::ranges::find(evaluation.scores, name, &Score::name)->value;
}

// A model whose features have collapsed maps all images to few directions.
void Pretrain::require_rank(const Evaluation& evaluation) const {
  constexpr double kMinRank = 0.05;
  if (!start_ || !pretrain_method_of(context_.recipe).watches_rank) return;
  const double rank = score_of(evaluation, "rank");
  if (rank >= kMinRank || rank >= score_of(*start_, "rank") / 2) return;
  throw Error("pretrain",
              str("features of an effective rank of at least ", 100 * kMinRank, " % of the largest possible ",
                  "(a lower \"lr\", or of lejepa a higher \"pretrain.lambda\", may help)"),
              str(100 * rank, " %: they have collapsed"));
}

Measurement Pretrain::measure(Split, const std::function<void(int64_t, int64_t)>& progress) {
  const autograd::NoGrad no_grad;
  set_training(false);
  const infer::Session session = headless_session(saved_model(), context_.threads, kernels::Precision::fp32);
  Measurement result;
  result.images = probe_ ? probe_->evaluated.size() : data_.validation.size();
  FeatureEvaluation::Result evaluated = evaluation_.measure(session, progress);
  result.scores = scores_of(metrics_.each, evaluated.values, result.images);
  result.loss = measures_loss() ? held_out_loss() : 1 - result.scores.front().value;
  require_rank(result);
  if (!start_) start_galleries_ = feature_galleries(evaluated.held_out, ", before training");
  result.details = std::move(evaluated.held_out);
  return result;
}

// Without labels and a loss of held-out images, later weights are preferred unless images are found again much less
// often, or the features have become much fewer, than at the start.
bool Pretrain::replaces(const Evaluation& evaluation, const Quality& best) const {
  constexpr double kMaxRetrievalLoss = 0.05, kMinRankShare = 0.5;
  if (pretrain_of(context_.recipe).keep == "last") return true;
  if (probe_ || measures_loss()) return Objective::replaces(evaluation, best);
  return !start_ || (score_of(evaluation, "retrieval") >= score_of(*start_, "retrieval") - kMaxRetrievalLoss &&
                     score_of(evaluation, "rank") >= kMinRankShare * score_of(*start_, "rank"));
}

}  // namespace vitrail::train
