// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/training_step_internal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/ops/loss.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/run/weight_update_internal.h"

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
  write_model(folder, models::write_model_config(made.config), made.model.named_parameters());
  return folder;
}

optim::GroupOptions groups_of(const Recipe& recipe) {
  optim::GroupOptions groups = recipe.groups;
  groups.frozen = recipe.model.freeze;
  return groups;
}

// A step of one process with its update.
class TestedStep {
 public:
  TestedStep(const Recipe& recipe, models::VisionTransformer& model, std::unique_ptr<Teacher> teacher = nullptr,
             const Tensor& class_weights = {})
      : step_(recipe, model, kOneProcess, std::move(teacher), class_weights),
        update_(recipe, model, groups_of(recipe), 5, kOneProcess) {}

  BatchResult accumulate(const data::Batch& batch, const BatchPosition& position) {
    return step_.accumulate(batch, position, [&](const Tensor& loss, const BatchResult& local) {
      return update_.accumulate(loss, local, position);
    });
  }
  // A batch at this position of the run, without a backward pass.
  void set_epoch(double epochs) {
    step_.accumulate(batch_of(1), {.epochs = epochs}, [](const Tensor&, const BatchResult& local) { return local; });
  }
  StepResult update(int64_t step, int64_t scheduled_step) { return update_.apply(step, scheduled_step); }

 private:
  TrainingStep step_;
  WeightUpdate update_;
};

TEST(TrainingStep, TokenDropAppliesToTheFirstEpochs) {
  const Recipe recipe = recipe_with("", {R"(token_drop={"rate": 0.75, "until": 0.4})"});
  PreparedModel made = prepare_model(recipe.model, kClasses, 1);
  TestedStep training_step(recipe, made.model);
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
  TestedStep training_step(recipe, made.model);
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
    TestedStep training_step(recipe, made.model, std::make_unique<Teacher>(folder, transform(), kClasses));
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
      TestedStep training_step(recipe, made.model, std::make_unique<Teacher>(folder, transform(), kClasses));
      const double loss = training_step.accumulate(batch, {}).loss;
      const autograd::NoGrad no_grad;
      const Tensor student = made.model.forward(batch.images);
      const double expected =
          ops::distillation(student, teacher_logits, {.hard = hard, .temperature = temperature}).item<double>();
      EXPECT_NEAR(loss, expected, 1e-5 * (1 + expected)) << hard << " " << temperature;
    }
  }
}

void use_cache(Teacher& teacher, const fs::path& folder, const Recipe& recipe, const std::string& images) {
  teacher.use_cache(folder, recipe, views_of(*recipe.loss.distillation), images);
}

// Other images with the same sample index and view get the cached logits, so the teacher did not run.
TEST(Teacher, RunsOncePerView) {
  const std::string folder = teacher_folder();
  const Recipe recipe = recipe_with("", {"loss.distillation={\"teacher\": \"" + folder + "\", \"views\": 2}"});
  Teacher teacher(folder, transform(), kClasses);
  use_cache(teacher, testing::scratch_folder(), recipe, "images");
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
  use_cache(teacher, testing::scratch_folder(), recipe_with("", {views, "loss.distillation.view_epochs=2"}), "images");
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
  use_cache(first, shared, recipe_with("", {views}), "images");
  const Tensor teacher_logits = first.logits(batch);
  batch.images = Tensor::randn({4, 3, 8, 8}, 5);
  auto logits_with = [&](const std::vector<std::string>& settings, const image::EvalTransform& prepared = transform()) {
    Teacher teacher(folder, prepared, kClasses);
    use_cache(teacher, shared, recipe_with("", settings), "images");
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
  use_cache(reduced_precision, shared, recipe_with("", {views}), "images");
  EXPECT_FALSE(testing::close(reduced_precision.logits(batch), teacher_logits, 0));
  Teacher of_other_images(folder, transform(), kClasses);
  use_cache(of_other_images, shared, recipe_with("", {views}), "other images");
  EXPECT_FALSE(testing::close(of_other_images.logits(batch), teacher_logits, 0));
  image::EvalTransform prepared = transform();
  prepared.crop_pct = 0.9;
  EXPECT_FALSE(testing::close(logits_with({views}, prepared), teacher_logits, 0));
  std::vector<image::ProcessorSteps> steps(5, image::ProcessorSteps{.size = {8, 8}});
  steps[1].resize = image::ProcessorSteps::Resize::shortest_edge;
  steps[2].longest_edge = 16;
  steps[3].crop = {8, 8};
  steps[4].rescale = 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    prepared.processor = steps[i];
    batch.images = Tensor::randn({4, 3, 8, 8}, 10 + i);
    EXPECT_TRUE(testing::close(logits_with({views}, prepared), Teacher(folder, prepared, kClasses).logits(batch), 0))
        << i << ": the cache has none of these steps";
  }
}

// Mixed targets were smoothed when they were made; labels are smoothed here.
TEST(TrainingStep, LabelsAreSmoothedAndMixedTargetsAreNot) {
  for (const char* loss : {"cross_entropy", "bce"}) {
    const Recipe recipe = recipe_with("", {std::string("loss.name=") + loss, "loss.label_smoothing=0.2"});
    const auto loss_of = [&](const data::Batch& batch) {
      PreparedModel made = prepare_model(recipe.model, kClasses, 1);
      TestedStep training_step(recipe, made.model);
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
  TestedStep training_step(recipe, made.model);
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

// Three images of known logits: the head has no weights, and its bias is the same for each image.
BatchResult counted(const std::vector<std::string>& settings, const std::vector<float>& bias,
                    const std::vector<int64_t>& labels, const Tensor& class_weights = {}) {
  const Recipe recipe = recipe_with("", settings);
  PreparedModel made = prepare_model(recipe.model, kClasses, 1);
  const Tensor weight = made.model.parameter("head.weight");
  std::fill_n(weight.data<float>(), weight.numel(), 0.0F);
  std::copy(bias.begin(), bias.end(), made.model.parameter("head.bias").data<float>());
  TestedStep training_step(recipe, made.model, nullptr, class_weights);
  data::Batch batch = batch_of(static_cast<int64_t>(labels.size()));
  std::copy(labels.begin(), labels.end(), batch.labels.data<int64_t>());
  return training_step.accumulate(batch, {});
}

TEST(TrainingStep, CountsTheImagesWhoseClassIsRight) {
  const std::vector<float> bias{1, 3, 2};
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  const BatchResult result = counted({}, bias, {1, 0, 1, 2, 1});
  EXPECT_EQ(result.images, 5);
  EXPECT_EQ(result.correct, 3);
  EXPECT_EQ(result.weight, 5);
  EXPECT_NEAR(result.loss, std::log(sum) - (3 * 3 + 1 + 2) / 5.0, 1e-6);
  EXPECT_EQ(counted({}, {2, 2, 2}, {0, 0, 1}).correct, 2) << "of equal logits the first";
  // The weighted mean of ops::cross_entropy is divided by the sum of the weights.
  const BatchResult weighted = counted({}, bias, {1, 0, 1, 2, 1}, Tensor::from<float>({3}, {4, 0.5F, 2}));
  EXPECT_EQ(weighted.weight, 4 + 2 + 3 * 0.5);
  EXPECT_NEAR(weighted.loss, std::log(sum) - (3 * 3 * 0.5 + 1 * 4 + 2 * 2) / 7.5, 1e-6);
}

TEST(TrainingStep, BinaryCrossEntropyIsTheMeanOrTheSumOverTheClasses) {
  const std::vector<float> bias{1, -2, 0.5F};
  const auto positive = [](double x) { return std::log1p(std::exp(-x)); };
  const auto negative = [](double x) { return std::log1p(std::exp(x)); };
  const double sum = positive(1) + negative(-2) + negative(0.5);
  EXPECT_NEAR(counted({"loss.name=bce"}, bias, {0}).loss, sum / 3, 1e-6);
  EXPECT_NEAR(counted({"loss.name=bce", "loss.bce_sum=true"}, bias, {0}).loss, sum, 1e-6);
  // Smoothed by 0.3, the targets are 0.8, 0.1 and 0.1; above the threshold they are 1.
  const double smooth = 0.8 * positive(1) + 0.2 * negative(1) + 0.1 * positive(-2) + 0.9 * negative(-2) +
                        0.1 * positive(0.5) + 0.9 * negative(0.5);
  EXPECT_NEAR(counted({"loss.name=bce", "loss.bce_sum=true", "loss.label_smoothing=0.3"}, bias, {0}).loss, smooth,
              1e-6);
  EXPECT_NEAR(
      counted({"loss.name=bce", "loss.bce_sum=true", "loss.label_smoothing=0.3", "loss.bce_threshold=0.5"}, bias, {0})
          .loss,
      sum, 1e-6);
}

TEST(TrainingStep, GradientsAreDividedByTheBatchesOfTheStep) {
  const Recipe recipe = recipe_with("");
  const auto gradient = [&](const std::vector<BatchPosition>& positions) {
    PreparedModel made = prepare_model(recipe.model, kClasses, 1);
    TestedStep training_step(recipe, made.model);
    for (const BatchPosition& position : positions) training_step.accumulate(batch_of(4), position);
    return autograd::grad_of(made.model.parameter("head.bias")).clone();
  };
  const Tensor whole = gradient({{}});
  const Tensor quarter = gradient({{.number = 0, .index = 1, .count = 4}});
  const Tensor three = gradient({{0, 0, 4}, {1, 1, 4}, {2, 2, 4}});
  for (int64_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(quarter.data<float>()[c], whole.data<float>()[c] / 4, 1e-7);
    EXPECT_NEAR(three.data<float>()[c], whole.data<float>()[c] * 3 / 4, 1e-7);
  }
}

TEST(TrainingStep, ABatchWithoutImagesDoesNothing) {
  const Recipe recipe = recipe_with("");
  PreparedModel made = prepare_model(recipe.model, kClasses, 1);
  TestedStep training_step(recipe, made.model);
  data::Batch none;
  none.images = Tensor::zeros({0, 3, 8, 8});
  none.labels = Tensor::zeros({0}, DType::i64);
  const BatchResult result = training_step.accumulate(none, {});
  EXPECT_EQ(result.images + result.correct, 0);
  EXPECT_EQ(result.loss, 0);
  EXPECT_FALSE(autograd::grad_of(made.model.parameter("head.bias")).defined());
  EXPECT_TRUE(training_step.update(0, 0).updated);
}

TEST(TrainingStep, ALossThatIsNotFiniteRejectsTheStep) {
  const Recipe recipe = recipe_with("");
  PreparedModel made = prepare_model(recipe.model, kClasses, 1);
  made.model.parameter("head.bias").data<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  TestedStep training_step(recipe, made.model);
  const BatchResult result = training_step.accumulate(batch_of(4), {});
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_FALSE(autograd::grad_of(made.model.parameter("head.weight")).defined()) << "no backward pass";
  const std::string message = error_of([&] { training_step.update(4, 0); });
  EXPECT_TRUE(
      message.starts_with("step 5: expected a finite loss and finite gradients, got the loss is nan; first not "
                          "finite: the weights of head.bias [3] (finite values 0 … 0) (learning rate 0.001; a "
                          "lower one, a warm-up or \"clip\" may help; \"non_finite\": \"skip\" skips such "
                          "steps)"))
      << message;
}

// The bits of dropout and drop path are those of the seed and of the number of the batch.
TEST(TrainingStep, RandomNumbersFollowTheSeedAndTheBatch) {
  const auto loss = [](const char* seed, uint64_t number) {
    const Recipe recipe = recipe_with(R"(, "proj_drop_rate": 0.5)", {seed});
    PreparedModel made = prepare_model(recipe.model, kClasses, 1);
    TestedStep training_step(recipe, made.model);
    data::Batch batch = batch_of(4);
    batch.positions = {0, 1, 2, 3};
    return training_step.accumulate(batch, {.number = number}).loss;
  };
  EXPECT_EQ(loss("seed=1", 3), loss("seed=1", 3));
  EXPECT_NE(loss("seed=1", 3), loss("seed=2", 3));
  EXPECT_NE(loss("seed=1", 3), loss("seed=1", 4));
}

// Rows first, then columns, as the interpolation of position embeddings does it.
TEST(Teacher, ResizesToItsOwnSizeOfOtherProportions) {
  const std::string folder = (testing::scratch_folder() / "wide").string();
  PreparedModel made = prepare_model(recipe_with(R"(, "img_size": [4, 10])").model, kClasses, 8);
  made.config.preprocessing = preprocessing_of({}, made.config);
  write_model(folder, models::write_model_config(made.config), made.model.named_parameters());
  image::EvalTransform student = transform(), own = transform();
  student.size = {7, 6};
  own.size = {4, 10};
  const Teacher resizing(folder, student, kClasses), same(folder, own, kClasses);
  const Tensor images = Tensor::randn({2, 3, 7, 6}, 4), resized = Tensor::empty({2, 3, 4, 10});
  for (int64_t plane = 0; plane < 6; ++plane) {
    const Tensor cells = Tensor::empty({1, 42, 1}), to = Tensor::empty({1, 40, 1});
    std::copy_n(images.data<float>() + 42 * plane, 42, cells.data<float>());
    to.copy_(nn::resample_positions(cells, 0, {7, 6}, {4, 10}, {}));
    std::copy_n(to.data<float>(), 40, resized.data<float>() + 40 * plane);
  }
  EXPECT_TRUE(testing::close(resizing.logits(images), same.logits(resized), 1e-4));
  EXPECT_EQ(error_of([&] { resizing.logits(resized); }), "teacher: expected images [2, 3, 7, 6], got [2, 3, 4, 10]");
}

TEST(Teacher, ItsClassesAreComparedByNameIfItHasNames) {
  const std::string folder = teacher_folder();
  EXPECT_EQ(error_of([&] {
              Teacher(folder, transform(), {"cat", "dog"});
            }),
            "teacher " + folder + ": expected 2 classes, as the data has, got 3");
  EXPECT_EQ(error_of([&] {
              Teacher(folder, transform(), {"cat", "dog", "toad"});
            }),
            "teacher " + folder + ": expected class 2 to be \"toad\", got \"frog\"");
  const std::string unnamed = (testing::scratch_folder() / "unnamed").string();
  PreparedModel made = prepare_model(recipe_with("").model, kClasses, 8);
  made.config.preprocessing = preprocessing_of({}, made.config);
  made.config.labels.clear();
  write_model(unnamed, models::write_model_config(made.config), made.model.named_parameters());
  EXPECT_NO_THROW(Teacher(unnamed, transform(), {"x", "y", "z"}));
}

TEST(Teacher, ItsCacheIsAFileOfTheFolder) {
  const std::string folder = teacher_folder();
  const Recipe recipe = recipe_with("", {"loss.distillation={\"teacher\": \"" + folder + "\", \"views\": 2}"});
  Teacher teacher(folder, transform(), kClasses);
  const fs::path cache = testing::scratch_folder() / "a/b";
  use_cache(teacher, cache, recipe, "images");
  const std::string name = fs::directory_iterator(cache)->path().filename().string();
  EXPECT_TRUE(name.starts_with("teacher-") && name.ends_with(".cache")) << name;
  EXPECT_EQ(name.size(), 8u + 16 + 6);
  data::Batch batch = batch_of(4);
  batch.view = 3;  // twice as many views: before and after the last epochs
  EXPECT_NO_THROW(teacher.logits(batch));
  batch.view = 4;
  EXPECT_THROW(teacher.logits(batch), Error);
  write_file(cache.parent_path() / "file", "x");
  EXPECT_TRUE(
      contains(error_of([&] { use_cache(teacher, cache.parent_path() / "file", recipe, ""); }), ": cannot be created"));
}

// With view_epochs the views have crops and flips only, so that the other augmentation does not change them.
TEST(Teacher, SharesViewsWhateverTheLaterAugmentation) {
  const std::string folder = teacher_folder();
  const std::string views = "loss.distillation={\"teacher\": \"" + folder + "\", \"views\": 2}";
  const fs::path shared = testing::scratch_folder();
  const auto files_with = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all{views};
    all.insert(all.end(), settings.begin(), settings.end());
    Teacher teacher(folder, transform(), kClasses);
    use_cache(teacher, shared, recipe_with("", all), "images");
    return std::distance(fs::directory_iterator(shared), fs::directory_iterator());
  };
  std::ptrdiff_t files = files_with({});
  EXPECT_EQ(files, 1);
  for (const char* setting : {"augment.affine.degrees=5", "augment.color_jitter.hue=0.25", "augment.grayscale=0.2",
                              "augment.blur.probability=0.5", "augment.solarize.probability=0.2",
                              "augment.erasing.probability=0.5", "augment.policy=trivialaugment"}) {
    EXPECT_EQ(files_with({setting, "loss.distillation.view_epochs=2"}), files) << setting;
    EXPECT_EQ(files_with({setting}), ++files) << setting;
  }
  for (const char* setting : {"augment.flip=random", "augment.padded_crop.padding=1"})
    EXPECT_EQ(files_with({setting, "loss.distillation.view_epochs=2"}), ++files) << setting;
}

}  // namespace
}  // namespace vitrail::train
