// SPDX-License-Identifier: Apache-2.0
#include "examples/extending/toy_objective/rotation.h"

#include <algorithm>
#include <numeric>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/data/datasets/dataset.h"
#include "vitrail/image/transform.h"
#include "vitrail/ops/loss.h"

namespace extending {
namespace {

using namespace vitrail;

// "rotation" in the recipe.
struct RotationRecipe {
  int64_t turns = 4;  // 2: upright or upside down
};

void describe_fields(Fields& fields, RotationRecipe& rotation) { fields.integer("turns", rotation.turns, 2, 4); }

void describe_rotation(Fields& fields, train::Recipe& recipe) {
  train::describe_section("rotation", fields, recipe, describe_fields);
}

const RotationRecipe& rotation_of(const train::Recipe& recipe) {
  return std::any_cast<const RotationRecipe&>(recipe.section);
}

void check_rotation(const train::Recipe& recipe, std::vector<std::string>& problems) {
  if (rotation_of(recipe).turns == 3) problems.emplace_back("rotation.turns: expected 2 or 4, got 3");
}

// A small model; one of the recipe's would come from models::find_architecture().
models::ModelConfig config_of(const train::Recipe& recipe) {
  models::ModelConfig config;
  config.architecture = "vit";
  config.vit = {.img_size = {16, 16}, .patch_size = {8, 8}, .embed_dim = 32, .depth = 2, .num_heads = 2};
  config.vit.num_classes = rotation_of(recipe).turns;
  return config;
}

models::VisionTransformer random_model(const models::ModelConfig& config, uint64_t seed) {
  RandomParams params(seed);
  return {config.vit, ParamSource(params)};
}

// Copies an image [C, S, S] to `to`, rotated by quarter turns.
void rotate(const Tensor& image, int64_t quarters, float* to) {
  const int64_t side = image.size(1);
  for (int64_t i = 0; i < image.numel(); ++i) {
    int64_t y = i / side % side, x = i % side;
    for (int64_t turn = 0; turn < quarters; ++turn) std::tie(y, x) = std::pair(x, side - 1 - y);
    to[i / (side * side) * side * side + y * side + x] = image.data<float>()[i];
  }
}

class Rotation : public train::Objective {
 public:
  explicit Rotation(const train::ObjectiveContext& context)
      : context_(context),
        config_(config_of(context.recipe)),
        model_(random_model(config_, context.recipe.seed)),
        training_(data::open_dataset(context.recipe.data.train, {.split = "train"})),
        validation_(data::open_dataset(context.recipe.data.train, {.split = "val"})),
        order_(static_cast<size_t>(training_->size())) {}

  nn::Module& model() override { return model_; }
  std::string config_json() const override { return models::write_model_config(config_); }

  int64_t size(train::Split split) const override {
    return split == train::Split::training     ? training_->size()
           : split == train::Split::validation ? validation_->size()
                                               : 0;
  }
  std::string name(train::Split) const override { return context_.recipe.data.train; }
  std::vector<train::ImageSet> image_sets() const override { return {{"training", training_->size()}}; }
  std::vector<std::string> introduction() const override {
    return {str("rotations of ", training_->size(), " images")};
  }

  int64_t batches() const override { return training_->size() / context_.recipe.batch_size; }

  void start_epoch(int64_t epoch, int64_t batch) override {
    epoch_ = epoch;
    next_ = batch * context_.recipe.batch_size;
    std::iota(order_.begin(), order_.end(), int64_t{0});
    RandomStream random(random_key("order", context_.recipe.seed, static_cast<uint64_t>(epoch)));
    for (size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[static_cast<size_t>(random.uniform() * static_cast<double>(i))]);
  }

  train::BatchResult train_batch(const train::BatchPosition&, const train::Backward& backward) override {
    std::vector<int64_t> samples, turns;
    for (int64_t i = 0; i < context_.recipe.batch_size; ++i, ++next_) {
      samples.push_back(order_[static_cast<size_t>(next_)]);
      RandomStream random(random_key("turn", context_.recipe.seed, static_cast<uint64_t>(epoch_)),
                          static_cast<uint64_t>(samples.back()));
      turns.push_back(static_cast<int64_t>(random.uniform() * static_cast<double>(num_turns())));
    }
    model_.train();
    const auto [loss, correct] = evaluate(*training_, samples, turns);
    const auto images = std::ssize(samples);
    return backward(loss, {.correct = correct, .images = images, .weight = static_cast<double>(images)});
  }

  const train::Metrics& metrics() const override {
    static const train::Metrics kMetrics{.each = {{"accuracy", "accuracy of rotations", "accuracy {}",
                                                   train::ScoreUnit::share, "Accuracy of rotations"}},
                                         .line = "rotations {0}",
                                         .average_line = "{0}",
                                         .in_training = true,
                                         .in_report = 1};
    return kMetrics;
  }

  // Each image in each rotation.
  train::Measurement measure(train::Split, const std::function<void(int64_t, int64_t)>& progress) override {
    const autograd::NoGrad no_grad;
    model_.eval();
    train::Measurement result;
    std::vector<int64_t> turns(static_cast<size_t>(num_turns()));
    std::iota(turns.begin(), turns.end(), int64_t{0});
    const int64_t images = validation_->size(), shown = images * num_turns();
    int64_t right = 0;
    for (int64_t i = 0; i < images; ++i) {
      const auto [loss, correct] = evaluate(*validation_, std::vector<int64_t>(turns.size(), i), turns);
      result.loss += loss.item<double>() / static_cast<double>(images);
      right += correct;
      progress(i + 1, images);
    }
    result.images = shown;
    result.scores = scores_of(metrics().each, {static_cast<double>(right) / static_cast<double>(shown)}, shown);
    return result;
  }

  std::string subject() const override { return config_.architecture + " for rotations"; }
  std::string usage() const override { return "embed IMAGE -m {} -o features.npy"; }

 private:
  int64_t num_turns() const { return rotation_of(context_.recipe).turns; }

  // The loss of images in these rotations, and how many are recognised.
  std::pair<Tensor, int64_t> evaluate(const data::Dataset& dataset, const std::vector<int64_t>& samples,
                                      const std::vector<int64_t>& turns) const {
    const int64_t count = std::ssize(samples), side = config_.vit.img_size[0];
    const image::EvalTransform transform{.size = {side, side}, .crop_pct = 1, .mean = {0.5}, .std = {0.5}};
    const Tensor images = Tensor::empty({count, 3, side, side});
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      rotate(image::apply(dataset.image(samples[at]), transform), turns[at] * (4 / num_turns()),
             images.data<float>() + i * 3 * side * side);
    }
    const Tensor logits = model_.forward(images);
    int64_t correct = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float* const row = logits.data<float>() + i * num_turns();
      correct += std::max_element(row, row + num_turns()) - row == turns[static_cast<size_t>(i)];
    }
    return {ops::cross_entropy(logits, Tensor::from<int64_t>({count}, turns)), correct};
  }

  const train::ObjectiveContext context_;
  models::ModelConfig config_;
  models::VisionTransformer model_;
  std::unique_ptr<const data::Dataset> training_, validation_;
  std::vector<int64_t> order_;  // indices of training images, as this epoch takes them
  int64_t epoch_ = 0, next_ = 0;
};

}  // namespace

train::ObjectiveRow rotation_objective() {
  return {.name = "rotation",
          .make = [](const train::ObjectiveContext& context) -> std::unique_ptr<train::Objective> {
            return std::make_unique<Rotation>(context);
          },
          .describe = describe_rotation,
          .check = check_rotation,
          .several_processes = false};
}

}  // namespace extending
