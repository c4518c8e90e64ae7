// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/run_events_internal.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/train/training_fixture.h"
#include "vitrail/optim/ema.h"
#include "vitrail/train/run/resume_internal.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::train {
namespace {

Recipe recipe_with_settings(const std::vector<std::string>& settings) {
  return parse_recipe(tiny_recipe("x"), "r.json", settings);
}

TEST(RowIsDue, AtTheFirstStepThenInIntervalsAndAtTheEnd) {
  const EpochLength length{.batches = 10, .steps = 10};
  const auto due = [&](const std::vector<std::string>& settings, int64_t epoch, int64_t step_in_epoch) {
    return row_is_due(recipe_with_settings(settings), {epoch, step_in_epoch, epoch * 10 + step_in_epoch}, length);
  };
  const std::vector<std::string> rare{"epochs=10", "log_every=1000"};  // every 100 / 20 = fifth step
  EXPECT_TRUE(due(rare, 0, 1));
  for (int64_t step = 2; step <= 10; ++step) EXPECT_EQ(due(rare, 3, step), step % 5 == 0) << step;
  const std::vector<std::string> every{"epochs=10", "log_every=4"};
  for (int64_t step = 2; step <= 9; ++step) EXPECT_EQ(due(every, 0, step), step % 4 == 0) << step;
  EXPECT_FALSE(due(every, 0, 10)) << "another epoch follows";
  EXPECT_TRUE(row_is_due(recipe_with_settings(every), {9, 10, 99}, length)) << "the end of the run";
  std::vector<std::string> patient = every;
  patient.push_back("patience=3");
  EXPECT_TRUE(row_is_due(recipe_with_settings(patient), {0, 10, 9}, length)) << "the run may end here";
  EXPECT_TRUE(due({"epochs=1", "log_every=1000"}, 0, 3)) << "a short run has all steps";
}

TEST(CheckpointIsDue, AfterStepsOrMinutesButNotAtTheEndOfAnEpoch) {
  const EpochLength length{.batches = 10, .steps = 5};
  const auto due = [&](const char* steps, const char* minutes, int64_t since, double seconds,
                       int64_t step_in_epoch = 4) {
    const Recipe recipe = recipe_with_settings(
        {std::string("checkpoint.every_steps=") + steps, std::string("checkpoint.every_minutes=") + minutes});
    return checkpoint_is_due(recipe, {0, step_in_epoch, 20 + since}, length, 20, seconds);
  };
  EXPECT_FALSE(due("3", "0", 2, 1e9));
  EXPECT_TRUE(due("3", "0", 3, 0));
  EXPECT_TRUE(due("3", "0", 4, 0));
  EXPECT_FALSE(due("3", "0", 3, 0, 10)) << "the end of the epoch saves anyway";
  EXPECT_FALSE(due("0", "0", 1000, 1e9)) << "never";
  EXPECT_FALSE(due("0", "2", 1000, 119));
  EXPECT_TRUE(due("0", "2", 0, 120));
  EXPECT_TRUE(due("3", "2", 0, 121));
}

TEST(CountStep, SkippedStepsInARowEndTheRun) {
  Counters counters;
  const StepResult skipped{.updated = false}, done{.gradient_norm = 2};
  for (int i = 0; i < 99; ++i) count_step(skipped, {}, counters);
  count_step(done, {}, counters);
  EXPECT_EQ(counters.skipped_in_a_row, 0);
  EXPECT_EQ(counters.skipped_steps, 99);
  EXPECT_EQ(counters.interval.steps, 1);
  EXPECT_EQ(counters.interval.gradient_norm, 2);
  for (int i = 0; i < 99; ++i) count_step(skipped, {}, counters);
  EXPECT_EQ(counters.interval.steps, 1);
  const std::string message = error_of([&] { count_step(skipped, {0, 0, 7}, counters); });
  EXPECT_TRUE(contains(message, "step 7: expected a finite loss, got 100 steps in a row")) << message;
}

TEST(OutOfPatience, SoManyEpochsAfterTheBest) {
  Counters counters;
  const Recipe recipe = recipe_with_settings({"patience=3"});
  const auto out = [&](int64_t epochs) { return out_of_patience(recipe, {.epoch = epochs}, counters); };
  EXPECT_FALSE(out(100)) << "nothing was validated";
  counters.best = {0, 1};
  counters.best_epoch = 2;
  EXPECT_FALSE(out(4));
  EXPECT_TRUE(out(5));
  EXPECT_FALSE(out_of_patience(recipe_with_settings({"patience=0"}), {.epoch = 100}, counters));
}

Quality first_score(const Evaluation& evaluation) { return {evaluation.scores.front().value, evaluation.loss}; }

TEST(CandidateOf, IsTheAverageIfItIsBetterAndWarmedUp) {
  EpochResult result{.validation = evaluation_with(1, {0.5})};
  const Candidate without = candidate_of(result, first_score, nullptr, 100);
  EXPECT_FALSE(without.is_average);
  EXPECT_EQ(without.quality.loss, 1);
  EXPECT_EQ(without.quality.score, 0.5);
  result.average = evaluation_with(0.5, {0.4});
  const optim::Ema ema({{"w", Tensor::zeros({1})}}, {.decay = 0.5});
  ASSERT_FALSE(ema.warmed_up(2));
  ASSERT_TRUE(ema.warmed_up(50));
  const Candidate average = candidate_of(result, first_score, &ema, 50);
  EXPECT_TRUE(average.is_average);
  EXPECT_EQ(average.quality.loss, 0.5);
  EXPECT_EQ(average.quality.score, 0.4);
  EXPECT_FALSE(candidate_of(result, first_score, &ema, 2).is_average) << "it is not warmed up";
  result.average->loss = 1.5;
  EXPECT_FALSE(candidate_of(result, first_score, &ema, 50).is_average) << "it is worse";
  EXPECT_EQ(candidate_of(result, first_score, &ema, 50).quality.loss, 1);
  result.average->loss = 1;
  EXPECT_FALSE(candidate_of(result, first_score, &ema, 50).is_average) << "its accuracy is lower";
  result.average->scores[0].value = 0.5;
  EXPECT_FALSE(candidate_of(result, first_score, &ema, 50).is_average) << "of equal ones the weights themselves";
  result.average->scores[0].value = 0.75;
  EXPECT_TRUE(candidate_of(result, first_score, &ema, 50).is_average);
}

TEST(ResumePosition, IsTheSameImageInBatchesOfAnotherSize) {
  struct Case {
    int64_t step_in_epoch, old_images, new_images, batches, accumulate, want;
  };
  for (const auto& [step, old_images, new_images, batches, accumulate, want] : {Case{6, 8, 8, 12, 4, 6},
                                                                                {6, 0, 8, 12, 4, 6},
                                                                                {6, 4, 8, 12, 1, 3},
                                                                                {5, 4, 8, 12, 1, 2},
                                                                                {6, 8, 4, 24, 1, 12},
                                                                                {6, 8, 4, 24, 5, 10},
                                                                                {12, 8, 4, 24, 5, 24},
                                                                                {3, 8, 4, 5, 4, 5},
                                                                                {0, 8, 4, 24, 3, 0}}) {
    const Position position = resume_position(
        {.epoch = 2, .step_in_epoch = step, .step = 9, .batch_images = old_images}, new_images, batches, accumulate);
    EXPECT_EQ(position.step_in_epoch, want) << step << " " << old_images << " " << new_images << " " << accumulate;
    EXPECT_EQ(position.batch_images, new_images);
    EXPECT_EQ(position.epoch, 2);
    EXPECT_EQ(position.step, 9);
  }
}

TEST(ClassNames, ThatChangedAreAnErrorWithTheFirstThatDiffers) {
  const auto message = [](const std::vector<std::string>& before, const std::vector<std::string>& now) {
    return error_of([&] { check_class_names(before, now, "run"); });
  };
  EXPECT_TRUE(
      contains(message({"a", "b"}, {"a", "c"}), "the run's 2 classes, with 'b' as class 1, got 2 classes, with 'c'"));
  EXPECT_TRUE(contains(message({"a", "b"}, {"a"}), "with 'b' as class 1, got 1 classes, with no class"));
  EXPECT_TRUE(contains(message({"a"}, {"a", "b"}), "with no class as class 1, got 2 classes, with 'b'"));
  EXPECT_NO_THROW(check_class_names({}, {"a"}, "run")) << "an old checkpoint";
  EXPECT_NO_THROW(check_class_names({"a"}, {"a"}, "run"));
}

TEST(CopyWeights, NeedsTheSameNamesAndShapes) {
  const Tensor to = Tensor::zeros({2, 2});
  const std::vector<nn::NamedTensor> target{{"w", to}};
  copy_weights({{"w", Tensor::full({2, 2}, 3, DType::f32)}}, target, "file");
  EXPECT_EQ(to.data<float>()[3], 3);
  EXPECT_TRUE(contains(error_of([&] { copy_weights({}, target, "file"); }), "file: expected 1 tensors, got 0"));
  EXPECT_TRUE(contains(error_of([&] {
                         copy_weights({{"v", Tensor::zeros({2, 2})}}, target, "file");
                       }),
                       "expected w [2, 2]"));
  EXPECT_TRUE(contains(error_of([&] {
                         copy_weights({{"w", Tensor::zeros({4})}}, target, "file");
                       }),
                       "expected w [2, 2]"));
}

TEST(LogValidation, HasARowOfTheWeightsAndOneOfTheirAverage) {
  const fs::path folder = testing::scratch_folder();
  Counters counters;
  MetricsLog log(folder, counters, kAccuracies);
  EpochResult result{.epoch = 3, .step = 17, .seconds = 9};
  log_validation(result, log);
  const std::string header = read_text(folder / "metrics.csv");
  EXPECT_EQ(std::count(header.begin(), header.end(), '\n'), 1);
  result.validation = evaluation_with(1.5, {0.25, 0.75});
  log_validation(result, log);
  const std::string weights = "val,17,3.0000,1.5,0.25,0.75,,,,,9.00\n";
  EXPECT_EQ(read_text(folder / "metrics.csv"), header + weights);
  result.average = evaluation_with(2.5, {0.125, 0.625});
  log_validation(result, log);
  EXPECT_EQ(read_text(folder / "metrics.csv"),
            header + weights + weights + "val_ema,17,3.0000,2.5,0.125,0.625,,,,,9.00\n");
}

TEST(RowIsDue, AtLeastTwentyTimesInARun) {
  struct Case {
    const char *epochs, *log_every;
    int64_t steps, interval;
  };
  for (const auto& [epochs, log_every, steps, interval] : {Case{"2", "50", 9, 1},
                                                           {"2", "50", 10, 1},
                                                           {"4", "50", 10, 2},
                                                           {"5", "50", 11, 2},
                                                           {"6", "50", 10, 3},
                                                           {"100", "50", 100, 50},
                                                           {"100", "7", 100, 7},
                                                           {"1", "1", 5, 1}}) {
    const Recipe recipe = recipe_with_settings({str("epochs=", epochs), str("log_every=", log_every)});
    for (int64_t step = 2; step <= 200; ++step) {
      EXPECT_EQ(row_is_due(recipe, {0, 1, step}, {.batches = 100, .steps = steps}), step % interval == 0)
          << epochs << " " << log_every << " " << step;
    }
  }
}

TEST(RestoreTensors, CopiesAllThreeGroupsAndReleasesThem) {
  const Tensor weight = Tensor::from<float>({3}, {1, 2, 3});
  const std::vector<nn::NamedTensor> parameters{{"w", weight}};
  const auto optimizer = optim::make_optimizer({.kind = "lion"}, {{.name = "w", .tensor = weight}});
  optim::Ema ema(parameters, {});
  const auto state_with = [](float value) {
    CheckpointState state;
    state.model = {{"w", Tensor::full({3}, value)}};
    state.optimizer = {{"step", Tensor::from<int64_t>({}, {11})}, {"exp_avg.w", Tensor::full({3}, value + 1)}};
    state.average = {{"w", Tensor::full({3}, value + 2)}};
    return state;
  };
  CheckpointState state = state_with(5);
  restore_tensors(state, parameters, *optimizer, &ema, "file");
  EXPECT_EQ(weight.data<float>()[2], 5);
  EXPECT_EQ(optimizer->steps(), 11);
  EXPECT_EQ(optimizer->state()[1].tensor.data<float>()[0], 6);
  EXPECT_EQ(ema.average()[0].tensor.data<float>()[1], 7);
  EXPECT_TRUE(state.model.empty() && state.optimizer.empty() && state.average.empty());
  CheckpointState without = state_with(8);
  without.average.clear();
  restore_tensors(without, parameters, *optimizer, &ema, "file");
  EXPECT_EQ(weight.data<float>()[0], 8);
  EXPECT_EQ(ema.average()[0].tensor.data<float>()[1], 7) << "the run had no average before";
  CheckpointState unused = state_with(9);
  restore_tensors(unused, parameters, *optimizer, nullptr, "file");
  EXPECT_EQ(weight.data<float>()[0], 9);
  EXPECT_EQ(ema.average()[0].tensor.data<float>()[1], 7);
  CheckpointState bad = state_with(1);
  bad.average[0].tensor.data<float>()[1] = std::nanf("");
  EXPECT_EQ(error_of([&] { restore_tensors(bad, parameters, *optimizer, &ema, "file"); }),
            "file: expected finite values, got w [3] (finite values 3 … 3)");
  EXPECT_EQ(weight.data<float>()[0], 9) << "nothing was copied";
}

TEST(ScheduledRate, IsThatOfAWrittenRecipe) {
  const std::string text = write_recipe(recipe_with_settings(
      {"schedule.name=linear", "schedule.warmup_epochs=0", "optimizer.lr=0.5", "epochs=4", "schedule.final_lr=0.25"}));
  EXPECT_DOUBLE_EQ(scheduled_rate(text, 10, 0).value(), 0.5);
  EXPECT_DOUBLE_EQ(scheduled_rate(text, 10, 20).value(), 0.375);
  EXPECT_DOUBLE_EQ(scheduled_rate(text, 20, 20).value(), 0.4375);
  EXPECT_FALSE(scheduled_rate("{}", 10, 0).has_value());
  EXPECT_FALSE(scheduled_rate("no JSON", 10, 0).has_value());
}

TEST(LoadResumableState, IsThatOfTheFolder) {
  const fs::path folder = testing::scratch_folder();
  const RunFolder run(folder);
  const Recipe recipe = recipe_with_settings({});
  const Fingerprint print{.build = "b", .isa = "i", .threads = 2, .ranks = 1};
  EXPECT_FALSE(load_resumable_state(run, recipe, {.resume = true}, print).has_value());
  CheckpointState saved;
  saved.position = {.epoch = 1, .step_in_epoch = 2, .step = 8};
  saved.recipe = write_recipe(recipe);
  saved.counters = "{}";
  saved.fingerprint = print;
  save_checkpoint(run.checkpoint("last"), saved);
  EXPECT_EQ(error_of([&] { load_resumable_state(run, recipe, {}, print); }),
            folder.string() +
                ": expected a folder without a run, or --resume to continue its run, got a folder with "
                "checkpoints");
  {
    const Warnings warnings;
    EXPECT_EQ(load_resumable_state(run, recipe, {.resume = true}, print)->position.step, 8);
    EXPECT_TRUE(warnings.messages.empty());
  }
  const Recipe changed = recipe_with_settings({"epochs=9", "clip=7"});
  EXPECT_EQ(error_of([&] { load_resumable_state(run, changed, {.resume = true}, print); }),
            folder.string() +
                ": the run was started with another recipe (--allow-changes resumes it anyway):\n"
                "  clip: 1.0 → 7.0\n  epochs: 3 → 9");
  const Warnings warnings;
  const Fingerprint other{.build = "c", .isa = "i", .threads = 2, .ranks = 1};
  EXPECT_TRUE(load_resumable_state(run, changed, {.resume = true, .allow_changes = true}, other).has_value());
  EXPECT_EQ(warnings.messages,
            (std::vector<std::string>{"resuming with another recipe:\n  clip: 1.0 → 7.0\n  epochs: 3 → 9",
                                      "results will not be bit-identical to an uninterrupted run: build: b → c"}));
}

TEST(LoadWeights, ReadsWhatWasWritten) {
  const fs::path file = testing::scratch_folder() / "w.safetensors";
  const Tensor a = Tensor::randn({2, 3}, 1), b = Tensor::randn({4}, 2);
  write_weights(file, {{"a", a}, {"b", b}});
  const auto metadata = weights::Checkpoint::open(file).metadata();
  EXPECT_EQ(metadata, (std::map<std::string, std::string>{{"format", "pt"}})) << "as other programs expect it";
  const Tensor to_a = Tensor::zeros({2, 3}), to_b = Tensor::zeros({4});
  load_weights(file, {{"b", to_b}, {"a", to_a}});
  EXPECT_EQ(to_a.data<float>()[5], a.data<float>()[5]);
  EXPECT_EQ(to_b.data<float>()[3], b.data<float>()[3]);
  EXPECT_EQ(error_of([&] { load_weights(file, {{"a", to_a}}); }), file.string() + ": expected 1 tensors, got 2");
  EXPECT_EQ(error_of([&] {
              load_weights(file, {{"a", to_a}, {"b", Tensor::zeros({5})}});
            }),
            file.string() + ": expected b [5], got another shape or none");
}

}  // namespace
}  // namespace vitrail::train
