// SPDX-License-Identifier: Apache-2.0
// A run replaces no other: what is in its folder decides whether it may begin.
#include "vitrail/train/run/run_files_internal.h"

#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/train/training_runs.h"

namespace vitrail::train {
namespace {

// Recipes that train in a moment.
Recipe short_recipe(const fs::path& images, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{"epochs=1", "data.holdout=6", "ema=null"};
  settings.insert(settings.end(), more.begin(), more.end());
  return parse_recipe(tiny_recipe(images), "r.json", settings);
}

Recipe short_probe(const fs::path& images) {
  const std::string init = testing::model_fixture("timm_token").parent_path().string();
  return parse_recipe(R"({"objective": "probe", "model": {"init": ")" + init + R"("}, "batch_size": 7,
      "data": {"train": ")" +
                          images.string() + R"("}})",
                      "r.json");
}

void place(const fs::path& folder, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    fs::create_directories((folder / file).parent_path());
    write_file(folder / file, "mine");
  }
}

TEST(RunFiles, EachFileOfARunIsNamed) {
  for (const auto& [file, name] : {std::pair{"summary.json", "summary.json"},
                                   {"recipe.json", "recipe.json"},
                                   {"metrics.csv", "metrics.csv"},
                                   {"report.html", "report.html"},
                                   {"model/config.json", "model"},
                                   {"last/model.safetensors", "last"},
                                   {"checkpoints/best.safetensors", "checkpoints/best.safetensors"}}) {
    const fs::path folder = testing::scratch_folder();
    place(folder, {file});
    EXPECT_EQ(find_run_file(folder), name);
    EXPECT_TRUE(contains(error_of([&] { require_startable(folder, false); }), str("got a folder with ", name))) << file;
  }
  const fs::path folder = testing::scratch_folder();
  for (const char* name : {"model", "last", "checkpoints"}) fs::create_directories(folder / name);
  place(folder, {"notes.txt", "data/model/x"});
  EXPECT_EQ(find_run_file(folder), "");
  EXPECT_EQ(find_results(folder), "");
  for (const bool resume : {false, true}) EXPECT_NO_THROW(require_startable(folder, resume));
  EXPECT_NO_THROW(require_startable(folder / "absent", false));
}

TEST(RunFiles, ALinkCountsWhereverItLeads) {
  const fs::path folder = testing::scratch_folder();
  fs::create_symlink("/nowhere", folder / "metrics.csv");
  EXPECT_EQ(find_run_file(folder), "metrics.csv");
}

// A process may be killed before its first checkpoint, even between the first files of its first results.
TEST(RunFiles, WhatAKilledRunLeavesResumes) {
  const fs::path folder = testing::scratch_folder();
  for (const char* file :
       {"recipe.json", "metrics.csv", "checkpoints/best.safetensors", "model/config.json", "report.html"}) {
    place(folder, {file});
    EXPECT_NO_THROW(require_startable(folder, true)) << file;
    EXPECT_ERROR(error_of([&] { require_startable(folder, false); }), folder.string(),
                 "a folder with " + find_run_file(folder));
  }
  write_file(folder / "summary.json", "{\"finished\": false}");
  EXPECT_NO_THROW(require_startable(folder, true));
  write_file(folder / "summary.json", "{\"finished\": true}");
  EXPECT_TRUE(contains(error_of([&] { require_startable(folder, true); }), "results (summary.json)"));
  write_file(folder / "summary.json", "{\"finished\":");
  EXPECT_NO_THROW(require_startable(folder, true)) << "half a file";
  write_file(folder / "summary.json", "{\"finished\": true}");
  place(folder, {"checkpoints/previous.safetensors"});
  EXPECT_NO_THROW(require_startable(folder, true)) << "with a checkpoint";
}

// To save space, a user has removed the checkpoints: model/ is what counts.
TEST(RunFiles, AFinishedRunWithoutItsCheckpointsStays) {
  const fs::path images = make_images(6), run = testing::scratch_folder() / "run";
  const Recipe recipe = short_recipe(images), other = short_recipe(images, {"seed=5"});
  train_to(run, recipe);
  fs::remove_all(run / "checkpoints");
  const std::string model = read_text(run / "model/model.safetensors"), metrics = read_text(run / "metrics.csv");
  EXPECT_ERROR(error_of([&] { train_to(run, other); }), run.string(), "a folder with summary.json");
  for (const Recipe& resumed : {recipe, other}) {
    EXPECT_ERROR(error_of([&] { train_to(run, resumed, true); }), run.string(),
                 "results (summary.json) without a checkpoint");
  }
  fs::remove(run / "summary.json");
  EXPECT_TRUE(contains(error_of([&] { train_to(run, recipe, true); }), "got results (model) without a checkpoint"));
  EXPECT_EQ(read_text(run / "model/model.safetensors"), model);
  EXPECT_EQ(read_text(run / "metrics.csv"), metrics);
  EXPECT_FALSE(fs::exists(run / "checkpoints")) << "a refused run leaves nothing behind";
}

TEST(RunFiles, AProbeAndARunDoNotReplaceEachOther) {
  const fs::path images = make_images(6), probe = testing::scratch_folder() / "probe",
                 run = probe.parent_path() / "run";
  train_to(probe, short_probe(images));
  const std::string model = read_text(probe / "model/model.safetensors");
  for (const bool resume : {false, true}) {
    EXPECT_TRUE(contains(error_of([&] { train_to(probe, short_recipe(images), resume); }), "summary.json")) << resume;
  }
  EXPECT_EQ(read_text(probe / "model/model.safetensors"), model);
  train_to(run, short_recipe(images));
  fs::remove_all(run / "checkpoints");
  const std::string trained = read_text(run / "model/model.safetensors");
  for (const bool resume : {false, true}) {
    EXPECT_TRUE(contains(error_of([&] { train_to(run, short_probe(images), resume); }), "got a folder with "))
        << resume;
  }
  EXPECT_EQ(read_text(run / "model/model.safetensors"), trained);
  EXPECT_FALSE(train_to(probe, short_probe(images), true).stopped) << "a probe is computed again";
}

TEST(RunFiles, AUsersOwnFilesOfTheseNamesStay) {
  const fs::path images = make_images(6), folder = testing::scratch_folder();
  for (const Recipe& recipe : {short_recipe(images), short_probe(images)}) {
    place(folder, {"metrics.csv", "model/config.json"});
    EXPECT_TRUE(contains(error_of([&] { train_to(folder, recipe); }), "got a folder with metrics.csv"));
    EXPECT_EQ(read_text(folder / "metrics.csv"), "mine");
    EXPECT_EQ(read_text(folder / "model/config.json"), "mine");
  }
}

}  // namespace
}  // namespace vitrail::train
