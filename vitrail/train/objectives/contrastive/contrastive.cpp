// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/contrastive/contrastive_internal.h"

#include <algorithm>

#include "vitrail/analysis/knn.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/precision.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/pipeline/dual_folder.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_loss_internal.h"
#include "vitrail/train/run/gather_rows_internal.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/validation_change_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kEvaluationBatch = 64;  // images or texts in a forward pass

std::optional<ZeroShotSet> zero_shot_of(const Recipe& recipe, int64_t channels) {
  const std::string& path = contrastive_of(recipe).zero_shot;
  return path.empty() ? std::nullopt : std::optional(open_zero_shot(path, recipe.data, channels));
}

std::vector<std::vector<int64_t>> label_ids_of(const std::optional<ZeroShotSet>& set, const DualTexts& texts,
                                               const std::vector<std::string>& templates) {
  std::vector<std::vector<int64_t>> ids;
  if (!set) return ids;
  for (const std::string& text : label_texts(set->labels, templates))
    ids.push_back(texts.token_ids(text, "contrastive.templates"));
  return ids;
}

// The tokens of other captions than the training dataset's, if there are any.
std::optional<CaptionTokens> further_tokens(const std::shared_ptr<const ImageCaptions>& captions, const Subset& images,
                                            const PairData& data, const DualTexts& texts) {
  if (!captions || captions == data.train) return std::nullopt;
  return CaptionTokens(texts, *captions, *images.dataset);
}

// Random crops are steps of timm's transform; the size, mean and deviation are the model's.
image::EvalTransform pair_transform(const Recipe& recipe, const models::ModelConfig& config) {
  return infer::transform_of(preprocessing_of(recipe.data, config), "data");
}

// Each process measures all images.
data::LoaderOptions pair_evaluation_options(const data::LoaderOptions& training, const models::ModelConfig& config) {
  data::LoaderOptions options = data::evaluation_options(training);
  options.transform = infer::transform_of(config.preprocessing, "data");
  options.batch_size = kEvaluationBatch;
  options.rank = 0, options.ranks = 1;
  return options;
}

}  // namespace

struct Contrastive::Progress {
  const std::function<void(int64_t, int64_t)>& report;
  int64_t total = 0;
  mutable int64_t done = 0;
  void step() const { report(++done, total); }
};

Contrastive::Contrastive(const ObjectiveContext& context)
    : context_(context),
      opened_(open_dual_model(context.recipe)),
      loss_(dual_loss(context.recipe, opened_)),
      texts_(opened_),
      data_(open_pair_data(context.recipe.data, opened_.config.vit.in_chans)),
      zero_shot_(zero_shot_of(context.recipe, opened_.config.vit.in_chans)),
      tokens_(texts_, *data_.train, *data_.images.train.dataset),
      validation_tokens_(further_tokens(data_.validation, data_.images.validation, data_, texts_)),
      test_tokens_(further_tokens(data_.test, data_.images.test, data_, texts_)),
      label_ids_(label_ids_of(zero_shot_, texts_, contrastive_of(context.recipe).templates)),
      model_(models::build_model(opened_), models::build_text_tower(opened_)),
      average_(contrastive_of(context.recipe).alpha, model_.named_parameters()),
      metrics_(contrastive_metrics(zero_shot_.has_value())),
      options_(training_options(context.recipe, data_.images, pair_transform(context.recipe, opened_.config),
                                opened_.config.vit.in_chans, context.threads, context.group)),
      evaluation_options_(pair_evaluation_options(options_, opened_.config)),
      loader_(data_.images.train.dataset, options_) {
  model_.image().checkpoint_blocks(context.recipe.model.activation_checkpointing);
  if (!trains_text()) caption_embeddings_ = fixed_texts(tokens_);
}

std::vector<std::string> Contrastive::frozen() const {
  std::vector<std::string> frozen = context_.recipe.model.freeze;
  if (!trains_text()) frozen.emplace_back("text.*");
  if (loss_ == models::DualLoss::softmax) frozen.emplace_back("logit_bias");
  return frozen;
}

std::string Contrastive::config_json() const { return dual_config_json(opened_); }

std::vector<nn::NamedTensor> Contrastive::saved(std::vector<nn::NamedTensor> parameters) const {
  return dual_file_tensors(opened_, average_.of(std::move(parameters)));
}

void Contrastive::write_beside(const std::filesystem::path& folder, const std::vector<nn::NamedTensor>&) const {
  copy_dual_processor(opened_, folder);
  copy_tokenizer(opened_.folder, folder);
}

const Subset& Contrastive::subset(Split split) const {
  const RunData& images = data_.images;
  return split == Split::training ? images.train : split == Split::validation ? images.validation : images.test;
}

const CaptionTokens& Contrastive::tokens(Split split) const {
  const std::optional<CaptionTokens>& further = split == Split::test ? test_tokens_ : validation_tokens_;
  return further ? *further : tokens_;
}

std::vector<ImageSet> Contrastive::image_sets() const {
  std::vector<ImageSet> sets = train::image_sets(data_.images);
  const std::vector<int64_t>& images = data_.images.train.samples;
  sets.push_back(image_set("captioned training", std::ssize(images), [&](int64_t i) {
    return join(data_.train->at(static_cast<size_t>(images[static_cast<size_t>(i)])), "\n");
  }));
  return sets;
}

std::string Contrastive::preprocessing() const {
  return preprocessing_text(opened_.config.preprocessing, context_.recipe.data.exif);
}

std::vector<std::string> Contrastive::introduction() const {
  const ContrastiveRecipe& contrastive = contrastive_of(context_.recipe);
  std::vector<std::string> lines{str(opened_.config.architecture, ", ", model_.num_parameters(), " parameters, ",
                                     trains_text() ? "both towers" : "the image tower", ", ",
                                     loss_ == models::DualLoss::sigmoid ? "sigmoid" : "softmax", " loss")};
  if (contrastive.alpha < 1)
    lines.push_back(str("the saved weights are the start + ", contrastive.alpha, " · (trained − start)"));
  lines.push_back("training on " + data_.images.train.name);
  if (const int64_t shared = shared_captions(data_.images.train, *data_.train); shared > 0)
    lines.push_back(str(counted(shared, "caption"), " of several images: in a batch they count as negatives although ",
                        "they fit"));
  if (tokens_.full() > 0)
    lines.push_back(str(counted(tokens_.full(), "caption"), " of at least the ", texts_.config().context_length,
                        " tokens of the model's context: what is beyond is cut"));
  if (zero_shot_) lines.push_back("zero-shot accuracy on " + zero_shot_->images.name);
  return lines;
}

void Contrastive::start_epoch(int64_t epoch, int64_t batch) {
  epoch_ = epoch;
  loader_.start(epoch, batch);
}

// [B, D]
Tensor Contrastive::batch_texts(const data::Batch& batch) {
  std::vector<int64_t> captions;
  for (const int64_t image : batch.samples)
    captions.push_back(drawn_caption(tokens_, image, context_.recipe.seed, epoch_));
  if (!trains_text())
    return ops::embedding(Tensor::from<int64_t>({std::ssize(captions)}, captions), caption_embeddings_);
  std::vector<std::vector<int64_t>> ids;
  for (const int64_t caption : captions) ids.push_back(tokens_.ids(caption));
  return model_.text().forward(texts_.padded(ids));
}

BatchResult Contrastive::train_batch(const BatchPosition& position, const Backward& backward) {
  const data::Batch batch = loader_.next().value();
  unreadable_.add(data_.images.train, batch);
  BatchResult local{.images = std::ssize(batch.samples)};
  local.skipped = std::ssize(batch.skipped);
  local.weight = static_cast<double>(local.images);
  model_.train(true);
  Tensor images, texts;
  {
    const nn::RandomScope random(context_.recipe.seed, position.number, batch.positions);
    const ops::MixedPrecision precision(context_.recipe.precision == "bf16" ? DType::bf16 : DType::f32);
    images = model_.image().forward(batch.images).to(DType::f32);
    texts = batch_texts(batch).to(DType::f32);
  }
  return backward(contrastive_loss(gather_rows(images, 1, context_.group), gather_rows(texts, 1, context_.group),
                                   model_.logit_scale(), model_.logit_bias(), loss_),
                  local);
}

void Contrastive::end_step(double) {
  if (loss_ == models::DualLoss::softmax) model_.limit_scale();
}

// Embeddings of length 1, [T, D].
Tensor Contrastive::embedded_texts(const std::vector<std::vector<int64_t>>& ids, const Progress& progress) const {
  std::vector<Tensor> parts;
  for (size_t first = 0; first < ids.size(); first += kEvaluationBatch) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
    const auto count = std::min<std::ptrdiff_t>(kEvaluationBatch, ids.end() - begin);
    parts.push_back(model_.text().forward(texts_.padded({begin, begin + count})));
    progress.step();
  }
  return analysis::normalized_rows(ops::cat(parts, 0));
}

Tensor Contrastive::fixed_texts(const CaptionTokens& captions) const {
  const autograd::NoGrad no_grad;
  std::vector<std::vector<int64_t>> ids;
  for (int64_t i = 0; i < captions.size(); ++i) ids.push_back(captions.ids(i));
  const std::function<void(int64_t, int64_t)> silent = [](int64_t, int64_t) {};
  return embedded_texts(ids, {.report = silent});
}

// Embeddings of length 1, [N, D].  samples: the images that could be read.
Tensor Contrastive::embedded_images(const Subset& images, std::vector<int64_t>& samples, const Progress& progress) {
  data::LoaderOptions options = evaluation_options_;
  options.subset = images.samples;
  data::Loader loader(images.dataset, options);
  loader.start(0);
  std::vector<Tensor> parts;
  int64_t skipped = 0;
  while (const auto batch = loader.next()) {
    skipped += std::ssize(batch->skipped);
    progress.step();
    if (batch->samples.empty()) continue;
    parts.push_back(model_.image().forward(batch->images));
    samples.insert(samples.end(), batch->samples.begin(), batch->samples.end());
  }
  unreadable_.add_left_out(images, skipped);
  if (parts.empty()) throw Error(images.name, "images that can be read", "none");
  return analysis::normalized_rows(ops::cat(parts, 0));
}

// The images of validation or test with all their captions.
PairEmbeddings Contrastive::embedded_pairs(Split split, const Progress& progress) {
  const CaptionTokens& tokens = this->tokens(split);
  PairEmbeddings pairs;
  pairs.images = embedded_images(subset(split), pairs.samples, progress);
  std::vector<std::vector<int64_t>> ids;
  for (size_t row = 0; row < pairs.samples.size(); ++row) {
    const int64_t image = pairs.samples[row];
    for (int64_t k = 0; k < tokens.count(image); ++k) {
      ids.push_back(tokens.ids(tokens.first(image) + k));
      pairs.image_of_text.push_back(static_cast<int64_t>(row));
    }
  }
  pairs.texts = embedded_texts(ids, progress);
  return pairs;
}

// The mean over the images, in batches of the size in training, each image with its first caption.
double Contrastive::held_out_loss(const PairEmbeddings& pairs) const {
  const int64_t images = pairs.images.size(0), batch = context_.recipe.batch_size * context_.group.size();
  std::vector<int64_t> first_text(static_cast<size_t>(images));
  for (int64_t text = std::ssize(pairs.image_of_text) - 1; text >= 0; --text)
    first_text[static_cast<size_t>(pairs.image_of_text[static_cast<size_t>(text)])] = text;
  const Tensor texts = ops::embedding(Tensor::from<int64_t>({images}, first_text), pairs.texts);
  double sum = 0;
  for (int64_t first = 0; first < images; first += batch) {
    const int64_t count = std::min(batch, images - first);
    sum += static_cast<double>(count) * contrastive_loss(pairs.images.narrow(0, first, count),
                                                         texts.narrow(0, first, count), model_.logit_scale(),
                                                         model_.logit_bias(), loss_)
                                            .item<double>();
  }
  return sum / static_cast<double>(images);
}

double Contrastive::measured_zero_shot(const Progress& progress) {
  std::vector<int64_t> samples, labels;
  const Tensor images = embedded_images(zero_shot_->images, samples, progress);
  for (const int64_t sample : samples) labels.push_back(zero_shot_->images.dataset->label(sample));
  return zero_shot_accuracy(images, labels,
                            label_embeddings(embedded_texts(label_ids_, progress), zero_shot_->labels.size()));
}

int64_t Contrastive::evaluation_batches(Split split) const {
  const CaptionTokens& tokens = this->tokens(split);
  const Subset& images = subset(split);
  int64_t texts = 0;
  for (const int64_t image : images.samples) texts += tokens.count(image);
  int64_t batches = ceil_div(images.size(), kEvaluationBatch) + ceil_div(texts, kEvaluationBatch);
  if (zero_shot_)
    batches +=
        ceil_div(zero_shot_->images.size(), kEvaluationBatch) + ceil_div(std::ssize(label_ids_), kEvaluationBatch);
  return batches;
}

Measurement Contrastive::measure(Split split, const std::function<void(int64_t, int64_t)>& report) {
  const autograd::NoGrad no_grad;
  const AveragedScope averaged(average_, model_.named_parameters());
  model_.train(false);
  const Progress progress{.report = report, .total = evaluation_batches(split)};
  Measurement result;
  PairEmbeddings pairs = embedded_pairs(split, progress);
  result.images = pairs.images.size(0);
  result.loss = held_out_loss(pairs);
  std::vector<double> values = retrieval_recall(pairs);
  if (zero_shot_) values.push_back(measured_zero_shot(progress));
  result.scores = scores_of(metrics_.each, values, result.images);
  if (!start_ && split == Split::validation) start_gallery_ = gallery_of_start(pairs);
  result.details = std::move(pairs);
  return result;
}

}  // namespace vitrail::train
