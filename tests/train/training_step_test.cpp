// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/training_step_internal.h"

#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/models/load.h"
#include "vitrail/ops/loss.h"
#include "vitrail/train/model_setup_internal.h"
#include "vitrail/train/run_folder_internal.h"

namespace vitrail::train {
namespace {

const std::vector<std::string> kClasses{"cat", "dog", "frog"};
const ProcessGroup kOneProcess(nullptr);

Recipe recipe_with(const std::string& model, const std::vector<std::string>& settings = {}) {
  return parse_recipe(R"({"model": {"img_size": 8, "patch_size": 2, "embed_dim": 16, "depth": 1, "num_heads": 2)" +
                          model + R"(}, "data": {"train": "x"}, "epochs": 10})",
                      "r.json", settings);
}

data::Batch batch_of(int64_t size) {
  data::Batch batch;
  batch.images = Tensor::randn({size, 3, 8, 8}, 4);
  batch.labels = Tensor::empty({size}, DType::i64);
  for (int64_t i = 0; i < size; ++i) {
    batch.labels.data<int64_t>()[i] = i % 3;
    batch.samples.push_back(i);
  }
  return batch;
}

image::EvalTransform transform() {
  image::EvalTransform result;
  result.size = {8, 8};
  result.mean = result.std = {0.5, 0.5, 0.5};
  return result;
}

// Writes a teacher for images of the same size, and returns its folder.
std::string teacher_folder() {
  const std::string folder = (testing::scratch_folder() / "teacher").string();
  PreparedModel made = prepare_model(recipe_with("").model, kClasses, 8);
  made.config.preprocessing = preprocessing_of({}, made.config);
  write_model(folder, made.config, made.model.named_parameters());
  return folder;
}

TEST(TrainingStep, TokenDropAppliesToTheFirstEpochs) {
  const Recipe recipe = recipe_with("", {R"(token_drop={"rate": 0.75, "until": 0.4})"});
  PreparedModel made = prepare_model(recipe.model, kClasses, 1);
  TrainingStep training_step(recipe, made.model, 5, nullptr, kOneProcess);
  const Tensor images = Tensor::randn({2, 3, 8, 8}, 4);
  made.model.train();
  const autograd::NoGrad no_grad;
  for (const auto& [epoch, tokens] : {std::pair{0.0, 1 + 4}, {3.99, 1 + 4}, {4.0, 1 + 16}, {9.9, 1 + 16}}) {
    training_step.set_epoch(epoch);
    EXPECT_EQ(made.model.forward_features(images).size(1), tokens) << epoch;
  }
  training_step.set_epoch(0);
  made.model.eval();
  EXPECT_EQ(made.model.forward_features(images).size(1), 17);
  EXPECT_EQ(made.model.config().patch_drop_rate, 0);
}

TEST(TrainingStep, WithoutTokenDropTheModelsPatchDropRateApplies) {
  const Recipe recipe = recipe_with(R"(, "patch_drop_rate": 0.5)");
  PreparedModel made = prepare_model(recipe.model, kClasses, 1);
  TrainingStep training_step(recipe, made.model, 5, nullptr, kOneProcess);
  training_step.set_epoch(0);
  made.model.train();
  const autograd::NoGrad no_grad;
  EXPECT_EQ(made.model.forward_features(Tensor::randn({2, 3, 8, 8}, 4)).size(1), 1 + 8);
}

// The class head learns from the labels, the distillation head from the teacher.  The loss is the weighted sum of both;
// with alpha 1 the class head gets no gradient.
TEST(TrainingStep, HeadsOfADistilledModelLearnFromLabelsAndTeacher) {
  const std::string folder = teacher_folder();
  for (const double alpha : {0.3, 1.0}) {
    const Recipe recipe = recipe_with(R"(, "dist_token": true)", {"loss.distillation={\"teacher\": \"" + folder +
                                                                  "\", \"alpha\": " + std::to_string(alpha) + "}"});
    PreparedModel made = prepare_model(recipe.model, kClasses, 1);
    TrainingStep training_step(recipe, made.model, 5, std::make_unique<Teacher>(folder, transform(), kClasses),
                               kOneProcess);
    const data::Batch batch = batch_of(4);
    const BatchResult result = training_step.accumulate(batch, {});
    const auto heads = [&] {
      const autograd::NoGrad no_grad;
      return made.model.forward_heads(batch.images);
    }();
    const Tensor teacher_logits = models::build_model(models::open_model(folder)).forward(batch.images);
    const double label_loss = ops::cross_entropy(heads.classes, batch.labels).item<double>();
    const double teacher_loss = ops::distillation(heads.distilled, teacher_logits, {.temperature = 3}).item<double>();
    EXPECT_NEAR(result.loss, (1 - alpha) * label_loss + alpha * teacher_loss, 1e-5);  // f32, values around 1
    auto largest = [&](const std::string& name) {
      const Tensor gradient = autograd::grad_of(made.model.parameter(name));
      double max = 0;
      for (int64_t i = 0; gradient.defined() && i < gradient.numel(); ++i)
        max = std::max(max, std::abs(static_cast<double>(gradient.data<float>()[i])));
      return max;
    };
    EXPECT_GT(largest("head_dist.weight"), 0);
    EXPECT_EQ(largest("head.weight") > 0, alpha < 1);
  }
}

TEST(TrainingStep, KindAndTemperatureOfTheDistillationAreThoseOfTheRecipe) {
  const std::string folder = teacher_folder();
  const data::Batch batch = batch_of(4);
  const Tensor teacher_logits = models::build_model(models::open_model(folder)).forward(batch.images);
  for (const bool hard : {false, true}) {
    for (const double temperature : {0.5, 4.0}) {
      const Recipe recipe = recipe_with("", {"loss.distillation={\"teacher\": \"" + folder + "\", \"alpha\": 1}",
                                             std::string("loss.distillation.kind=") + (hard ? "hard" : "soft"),
                                             "loss.distillation.temperature=" + std::to_string(temperature)});
      PreparedModel made = prepare_model(recipe.model, kClasses, 1);
      TrainingStep training_step(recipe, made.model, 5, std::make_unique<Teacher>(folder, transform(), kClasses),
                                 kOneProcess);
      const double loss = training_step.accumulate(batch, {}).loss;
      const autograd::NoGrad no_grad;
      const Tensor student = made.model.forward(batch.images);
      const double expected =
          ops::distillation(student, teacher_logits, {.hard = hard, .temperature = temperature}).item<double>();
      EXPECT_NEAR(loss, expected, 1e-5 * (1 + expected)) << hard << " " << temperature;
    }
  }
}

// Other images with the same sample index and view get the cached logits, so the teacher did not run.
TEST(Teacher, RunsOncePerView) {
  const std::string folder = teacher_folder();
  const Recipe recipe = recipe_with("", {"loss.distillation={\"teacher\": \"" + folder + "\", \"views\": 2}"});
  Teacher teacher(folder, transform(), kClasses);
  teacher.use_cache(testing::scratch_folder(), recipe);
  data::Batch batch = batch_of(4);
  batch.view = 1;
  const Tensor teacher_logits = teacher.logits(batch);
  EXPECT_TRUE(testing::close(teacher_logits, teacher.logits(batch.images), 0));
  batch.images = Tensor::randn({4, 3, 8, 8}, 5);
  EXPECT_TRUE(testing::close(teacher.logits(batch), teacher_logits, 0));
  for (const int64_t view : {0, -1}) {  // another view; no view, as with mixed images
    batch.view = view;
    EXPECT_TRUE(testing::close(teacher.logits(batch), teacher.logits(batch.images), 0)) << view;
  }
}

// With view_epochs, an image that is no view gets the mean of the logits cached for its views, if there are any.
TEST(Teacher, GivesNewImagesTheMeanOfTheCachedLogits) {
  const std::string folder = teacher_folder();
  const std::string views = "loss.distillation={\"teacher\": \"" + folder + "\", \"views\": 2}";
  Teacher teacher(folder, transform(), kClasses);
  teacher.use_cache(testing::scratch_folder(), recipe_with("", {views, "loss.distillation.view_epochs=2"}));
  data::Batch batch = batch_of(4);
  const Tensor without_views = teacher.logits(batch);
  EXPECT_TRUE(testing::close(without_views, teacher.logits(batch.images), 0));
  std::vector<Tensor> teacher_logits;
  for (const int64_t view : {0, 1}) {
    batch.view = view;
    batch.images = Tensor::randn({4, 3, 8, 8}, 5 + static_cast<uint64_t>(view));
    teacher_logits.push_back(teacher.logits(batch));
  }
  batch.view = -1;
  const Tensor mean = teacher.logits(batch);
  for (int64_t i = 0; i < mean.numel(); ++i)
    EXPECT_FLOAT_EQ(mean.data<float>()[i],
                    (teacher_logits[0].data<float>()[i] + teacher_logits[1].data<float>()[i]) / 2);
}

// Runs share cached logits exactly if their views are the same.
TEST(Teacher, SharesTheCacheBetweenRunsWithTheSameViews) {
  const std::string folder = teacher_folder();
  const std::string views = "loss.distillation={\"teacher\": \"" + folder + "\", \"views\": 2}";
  data::Batch batch = batch_of(4);
  batch.view = 1;
  Teacher first(folder, transform(), kClasses);
  const fs::path shared = testing::scratch_folder() / "cache";
  first.use_cache(shared, recipe_with("", {views}));
  const Tensor teacher_logits = first.logits(batch);
  batch.images = Tensor::randn({4, 3, 8, 8}, 5);
  auto logits_with = [&](const std::vector<std::string>& settings, const image::EvalTransform& prepared = transform()) {
    Teacher teacher(folder, prepared, kClasses);
    teacher.use_cache(shared, recipe_with("", settings));
    return teacher.logits(batch);
  };
  for (const char* same : {"optimizer.lr=0.5", "epochs=3", "batch_size=7", "loss.distillation.alpha=0.9",
                           "data.val=elsewhere", "data.holdout=3", "augment.policy_share=0.5"})
    EXPECT_TRUE(testing::close(logits_with({views, same}), teacher_logits, 0)) << same;
  const std::string policy = "augment.policy=rand-m5-n1-p1";
  EXPECT_TRUE(testing::close(logits_with({views, policy, "loss.distillation.view_epochs=2"}), teacher_logits, 0));
  for (const char* other : {"seed=1", policy.c_str(), "augment.flip=random", "loss.distillation.views=3",
                            "data.train=elsewhere", "data.exif=true", "data.train_split=train"})
    EXPECT_FALSE(testing::close(logits_with({views, other}), teacher_logits, 0)) << other;
  Teacher reduced_precision(folder, transform(), kClasses, kernels::Precision::half);
  reduced_precision.use_cache(shared, recipe_with("", {views}));
  EXPECT_FALSE(testing::close(reduced_precision.logits(batch), teacher_logits, 0));
  image::EvalTransform prepared = transform();
  prepared.crop_pct = 0.9;
  EXPECT_FALSE(testing::close(logits_with({views}, prepared), teacher_logits, 0));
}

// Mixed targets were smoothed when they were made; labels are smoothed here.
TEST(TrainingStep, LabelsAreSmoothedAndMixedTargetsAreNot) {
  for (const char* loss : {"cross_entropy", "bce"}) {
    const Recipe recipe = recipe_with("", {std::string("loss.name=") + loss, "loss.label_smoothing=0.2"});
    const auto loss_of = [&](const data::Batch& batch) {
      PreparedModel made = prepare_model(recipe.model, kClasses, 1);
      TrainingStep training_step(recipe, made.model, 5, nullptr, kOneProcess);
      return training_step.accumulate(batch, {}).loss;
    };
    data::Batch batch = batch_of(3), mixed = batch_of(3);
    mixed.targets = Tensor::full({3, 3}, 0.2 / 3);
    for (int64_t i = 0; i < 3; ++i) mixed.targets.data<float>()[i * 3 + i] += 0.8F;
    const double smoothed = loss_of(batch);
    EXPECT_NEAR(loss_of(mixed), smoothed, 1e-6) << loss;
    mixed.targets = Tensor::zeros({3, 3});
    for (int64_t i = 0; i < 3; ++i) mixed.targets.data<float>()[i * 3 + i] = 1;
    EXPECT_GT(std::abs(loss_of(mixed) - smoothed), 1e-5) << loss;
  }
}

TEST(TrainingStep, WithoutATeacherTheLossIsThatOfTheMeanOfBothHeads) {
  const Recipe recipe = recipe_with(R"(, "dist_token": true)");
  PreparedModel made = prepare_model(recipe.model, kClasses, 1);
  TrainingStep training_step(recipe, made.model, 5, nullptr, kOneProcess);
  const data::Batch batch = batch_of(4);
  const double loss = training_step.accumulate(batch, {}).loss;
  const autograd::NoGrad no_grad;
  made.model.eval();
  EXPECT_NEAR(loss, ops::cross_entropy(made.model.forward(batch.images), batch.labels).item<double>(), 1e-5);
}

// The teacher of 0.5 and 0.5 sees the pixels that the student's own normalisation stands for.
TEST(Teacher, ConvertsTheNormalisationOfTheStudent) {
  const Teacher teacher(teacher_folder(), transform(), kClasses);
  image::EvalTransform own = transform();
  own.mean = {0.1, 0.2, 0.3};
  own.std = {0.25, 0.5, 1};
  const std::string folder = teacher_folder();
  const Teacher converting(folder, own, kClasses);
  const Tensor images = Tensor::randn({2, 3, 8, 8}, 4);  // as the student's
  Tensor same = images.clone();                          // as the teacher's
  for (int64_t i = 0; i < same.numel(); ++i) {
    const auto c = static_cast<size_t>(i / 64 % 3);
    same.data<float>()[i] = static_cast<float>((images.data<float>()[i] * own.std[c] + own.mean[c] - 0.5) / 0.5);
  }
  EXPECT_TRUE(testing::close(converting.logits(images), teacher.logits(same), 1e-5));
  EXPECT_FALSE(testing::close(converting.logits(images), teacher.logits(images), 1e-3));
}

TEST(Teacher, OfOtherClassesOrImagesIsRefused) {
  const std::string folder = teacher_folder();
  EXPECT_TRUE(testing::contains(error_of([&] { Teacher(folder, transform(), {"cat", "dog"}); }), "2 classes"));
  EXPECT_TRUE(testing::contains(error_of([&] {
                                  Teacher(folder, transform(), {"cat", "frog", "dog"});
                                }),
                                "class 1 to be \"frog\", got \"dog\""));
  const Teacher teacher(folder, transform(), kClasses);
  EXPECT_TRUE(testing::contains(error_of([&] { teacher.logits(Tensor::zeros({1, 3, 8, 9})); }), "teacher"));
}

}  // namespace
}  // namespace vitrail::train
