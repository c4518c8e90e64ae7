// SPDX-License-Identifier: Apache-2.0
// The methods of pretraining against PyTorch (tools/golden/pretrain_methods.py).
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/train/training_runs.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/data/datasets/unlabelled.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/train/objectives/pretrain/pretrain_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kImages = 4;

// Weights of the fixture by their names after a prefix.
class FixtureParams : public ParamProvider {
 public:
  FixtureParams(const testing::Golden& golden, std::string prefix) : golden_(golden), prefix_(std::move(prefix)) {}
  Tensor get(const std::string& path, const Shape&, const Initializer&) override {
    return golden_[prefix_ + path].clone();
  }
  bool has(const std::string&) const override { return true; }
  void finish() override {}

 private:
  const testing::Golden& golden_;
  std::string prefix_;
};

Recipe recipe_of_method(const std::string& method, const std::vector<std::string>& settings) {
  std::vector<std::string> all{"pretrain.method=" + method};
  all.insert(all.end(), settings.begin(), settings.end());
  return parse_recipe(R"({"objective": "pretrain", "model": {"embed_dim": 16}, "data": {"train": "x"}, "epochs": 2})",
                      "r.json", all);
}

// A method with the model, the layers and the views of the fixture.
class MethodFixture {
 public:
  MethodFixture(const std::string& name, const std::vector<std::string>& settings)
      : recipe_(recipe_of_method(name, settings)), name_(name), params_(golden_, "model.") {
    method_ = pretrain_method_of(recipe_).make({.recipe = recipe_,
                                                .model = model_,
                                                .transform = {.size = {16, 16}},
                                                .images = images_,
                                                .folder = {},
                                                .group = alone_});
    trained_ = std::make_unique<PretrainModel>(model_, method_->layers());
    const autograd::NoGrad no_grad;
    for (const nn::NamedTensor& parameter : method_->layers().named_parameters()) {
      const std::string own = name == "dino" ? layer_of_head(parameter.name) : parameter.name;
      if (!own.empty()) parameter.tensor.copy_(golden_[name + ".layers." + own]);
    }
    optim::GroupOptions groups{.weight_decay = 0.05, .frozen = method_->frozen()};
    optimizer_ = optim::make_optimizer({}, optim::parameter_groups(*trained_, groups));
    batch_.labels = Tensor::from<int64_t>({kImages}, {0, 2, 4, 6});
    batch_.samples = batch_.positions = {0, 1, 2, 3};
  }

  Tensor loss(int step) {
    const nn::RandomScope random(0, static_cast<uint64_t>(step));
    trained_->train();
    return method_->loss({.data = batch_, .number = static_cast<uint64_t>(step), .epochs = static_cast<double>(step)});
  }

  // Three steps: the losses, the gradients of the first, and the weights after the third.
  void expect_learns(double momentum_progress) {
    for (int step = 0; step < 3; ++step) {
      const Tensor value = loss(step);
      EXPECT_TRUE(testing::close(value, golden_[str(name_, ".loss_", step)], 0, 2e-6)) << step;
      autograd::backward(value);
      if (step == 0) expect_gradients();
      optimizer_->step(1e-3);
      optimizer_->clear_gradients();
      const autograd::NoGrad no_grad;
      method_->end_step(momentum_progress);
    }
    for (const nn::NamedTensor& parameter : trained_->named_parameters()) {
      if (has_no_gradient(parameter.name)) continue;
      EXPECT_TRUE(testing::close(parameter.tensor, golden_[name_ + ".after." + parameter.name], 2e-5))
          << parameter.name;
    }
  }

  void expect_gradients() {
    for (const char* weight : {"patch_embed.proj.weight", "blocks.0.attn.qkv.weight"}) {
      const Tensor want = golden_[name_ + ".grad." + weight];
      EXPECT_TRUE(testing::close(autograd::grad_of(model_.parameter(weight)), want, 1e-6, 1e-5)) << weight;
    }
  }

  void use_views() {
    const auto cat = [&](std::initializer_list<int> views) {
      std::vector<float> values;
      for (const int view : views) {
        const Tensor v = golden_[str("view_", view)].contiguous();
        values.insert(values.end(), v.data<float>(), v.data<float>() + v.numel());
      }
      const int64_t side = golden_[str("view_", *views.begin())].size(2);
      return Tensor::from<float>({std::ssize(views) * kImages, 3, side, side}, values);
    };
    batch_.views = name_ == "dino" ? std::vector<Tensor>{cat({0}), cat({1}), cat({2, 3, 4})}
                                   : std::vector<Tensor>{cat({0, 1}), cat({2, 3, 4})};
  }
  void use_one_view() { batch_.images = golden_["view_0"]; }

 private:
  // AdamW turns rounding errors into steps where the gradient is 0: the bias of attention's keys, and in front of a
  // batch normalisation or of a difference of projections.
  bool has_no_gradient(const std::string& name) const {
    const bool is_lejepas = name_ == "lejepa" && (name == "norm.bias" || name.starts_with("pretrain.fc"));
    return name.ends_with("qkv.bias") || (is_lejepas && name.ends_with(".bias"));
  }

  // The name in the fixture of a layer of the student's or the teacher's head.
  static std::string layer_of_head(const std::string& name) {
    for (const std::string_view prefix : {"head.", "teacher_head."}) {
      if (name.starts_with(prefix)) return name.substr(prefix.size());
    }
    return "";
  }

  static models::VisionTransformerConfig config() {
    models::VisionTransformerConfig config;
    config.img_size = {16, 16}, config.patch_size = {4, 4}, config.embed_dim = 16, config.depth = 1;
    config.num_heads = 2, config.mlp_ratio = 2, config.num_classes = 0, config.dynamic_img_size = true;
    return config;
  }

  const testing::Golden golden_ = testing::read_golden(testing::fixture("train/pretrain_methods.safetensors"));
  Recipe recipe_;
  std::string name_;
  FixtureParams params_;
  models::VisionTransformer model_{config(), ParamSource(params_)};
  const ProcessGroup alone_{nullptr};
  Subset images_{
      .dataset = data::open_unlabelled(make_images(3) / "train"), .samples = {0, 1, 2, 3, 4, 5, 6, 7, 8}, .name = ""};
  std::unique_ptr<PretrainMethod> method_;
  std::unique_ptr<PretrainModel> trained_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  data::Batch batch_;
};

TEST(PretrainMethods, DietEqualsPyTorch) {
  MethodFixture diet("diet", {"loss.label_smoothing=0.3"});
  diet.use_one_view();
  diet.expect_learns(1);
}

std::vector<std::string> lejepa_settings(const std::string& lambda, const std::string& regularizer) {
  return {"pretrain.projector_dim=8", "pretrain.projection_dim=6", "pretrain.lambda=" + lambda,
          "pretrain.regularizer=" + regularizer};
}

// lambda 0: the invariance alone.
TEST(PretrainMethods, LejepasInvarianceEqualsPyTorch) {
  MethodFixture lejepa("lejepa", lejepa_settings("0", "sigreg"));
  lejepa.use_views();
  lejepa.expect_learns(1);
}

// lambda 1: the regulariser alone, of all views, with the directions of the step.
TEST(PretrainMethods, LejepasRegulariserIsOfTheProjectionsOfAllViews) {
  const auto loss_with = [](const char* lambda, const char* regularizer, int step) {
    MethodFixture lejepa("lejepa", lejepa_settings(lambda, regularizer));
    lejepa.use_views();
    return lejepa.loss(step).item<double>();
  };
  const double invariance = loss_with("0", "sigreg", 0);
  for (const char* regularizer : {"sigreg", "visreg"}) {
    const double regularizer_alone = loss_with("1", regularizer, 0), mixed = loss_with("0.25", regularizer, 0);
    EXPECT_NEAR(mixed, 0.75 * invariance + 0.25 * regularizer_alone, 1e-5) << regularizer;
    EXPECT_NE(regularizer_alone, loss_with("1", regularizer, 1)) << "other directions in each step";
  }
  EXPECT_NE(loss_with("1", "sigreg", 0), loss_with("1", "visreg", 0));
  EXPECT_NEAR(loss_with("null", "sigreg", 0), 0.98 * invariance + 0.02 * loss_with("1", "sigreg", 0), 1e-5);
}

// Equal views of an image in training mode: each has its own dropped paths, whatever its group.
TEST(PretrainViews, HaveDrawsOfTheirOwn) {
  models::VisionTransformerConfig config;
  config.img_size = {8, 8}, config.patch_size = {4, 4}, config.embed_dim = 16, config.depth = 8;
  config.num_heads = 2, config.num_classes = 0, config.drop_path_rate = 0.5;
  RandomParams params(3);
  models::VisionTransformer model(config, ParamSource(params));
  model.train();
  data::Batch batch;
  batch.samples = batch.positions = {0, 1};
  const Tensor view = Tensor::randn({1, 3, 8, 8}, 5), views = view.expand({4, 3, 8, 8}).contiguous();
  const nn::RandomScope random(1, 2);
  batch.views = {views};
  const Tensor features = features_of_views(model, batch);
  EXPECT_TRUE(testing::close(features_of_views(model, batch), features, 0));
  for (const int64_t row : {1, 2, 3})
    EXPECT_FALSE(testing::close(features.select(0, row), features.select(0, 0), 1e-6)) << row;
  batch.views = {views.narrow(0, 0, 2), views.narrow(0, 2, 2)};
  EXPECT_TRUE(testing::close(features_of_views(model, batch), features, 1e-6)) << "in two groups";
}

// The cosine of the momentum is 0.9 where it starts from 0.8 in the middle of the run.
TEST(PretrainMethods, DinoEqualsPyTorch) {
  MethodFixture dino("dino", {"pretrain.projector_dim=8", "pretrain.prototypes=6", "pretrain.momentum=0.8"});
  dino.use_views();
  dino.expect_learns(0.5);
}

// A student that is its own teacher: the cosine of equal features is 1, and that of opposite ones −1.
TEST(PretrainMethods, DistillComparesWithTheTeachersFeatures) {
  const fs::path images = make_images(40), scratch = testing::scratch_folder();
  const Recipe start = parse_recipe(R"({"objective": "pretrain", "model": {"img_size": 8, "patch_size": 4,
      "embed_dim": 16, "depth": 1, "num_heads": 2}, "epochs": 1, "batch_size": 16, "data": {"train": ")" +
                                        (images / "train").string() + R"("}})",
                                    "r.json");
  train_to(scratch / "teacher", start);
  const std::string teacher = (scratch / "teacher/model").string();
  const Recipe recipe =
      with_overrides(start, "r.json",
                     {"pretrain.method=distill", "pretrain.teacher=" + teacher, "model=null", "model.init=" + teacher});
  const ProcessGroup alone{nullptr};
  Pretrain distill(
      {.recipe = recipe, .group = alone, .threads = 1, .folder = scratch / "run", .log = [](const auto&) {}});
  for (const double sign : {1.0, -1.0}) {
    const autograd::NoGrad no_grad;
    const Tensor projection = distill.model().parameter("pretrain.projection.weight");
    projection.copy_(Tensor::zeros(projection.shape()));
    for (int64_t i = 0; i < 16; ++i) projection.data<float>()[i * 17] = static_cast<float>(sign);
    Tensor bias = distill.model().parameter("pretrain.projection.bias");
    bias.copy_(Tensor::zeros(bias.shape()));
    distill.start_epoch(0, 0);
    distill.train_batch({}, [&](const Tensor& loss, const BatchResult& local) {
      EXPECT_NEAR(loss.item<double>(), 1 - sign, 1e-4);
      return local;
    });
  }
}

}  // namespace
}  // namespace vitrail::train
