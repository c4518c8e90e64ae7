// SPDX-License-Identifier: Apache-2.0
// The options of pretrain.
#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/train/training_fixture.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// A run of one epoch on 120 images, which --resume continues.
class UnlabelledRun {
 public:
  Arguments arguments(const Arguments& more = {}) const {
    return Arguments{"pretrain", images_ / "train", "-o", folder_, "-m", small_model(), "--threads", "1"} + more;
  }
  nlohmann::json recipe() const { return nlohmann::json::parse(content_of(folder_ / "recipe.json")); }
  nlohmann::json recipe_with(const Arguments& more) const {
    run(arguments(more));
    return recipe();
  }
  fs::path images() const { return images_; }
  fs::path folder() const { return folder_; }

 private:
  fs::path images_ = train::make_images(40, 4), folder_ = scratch_folder() / "run";
};

const Arguments kOnePretrainingEpoch{"--epochs", "1"};

void check_output_of_pretrain() {
  const UnlabelledRun unlabelled;
  run(unlabelled.arguments(kOnePretrainingEpoch));
  for (const char* file : {"recipe.json", "model/model.safetensors", "last/model.safetensors", "report.html"})
    EXPECT_TRUE(fs::exists(unlabelled.folder() / file)) << file;
}

void check_model_of_pretrain() {
  EXPECT_EQ(UnlabelledRun().recipe_with(kOnePretrainingEpoch)["model"]["init"], small_model());
}

void check_probe_of_pretrain() {
  const UnlabelledRun unlabelled;
  const auto result = json_of(unlabelled.arguments(kOnePretrainingEpoch + Arguments{"--probe", unlabelled.images()}));
  for (const char* key : {"start_knn", "held_out_knn", "last_knn"}) EXPECT_TRUE(result.contains(key)) << key;
  EXPECT_EQ(unlabelled.recipe()["pretrain"]["probe"], unlabelled.images().string());
}

void check_method_of_pretrain() {
  EXPECT_EQ(UnlabelledRun().recipe_with(kOnePretrainingEpoch + Arguments{"--method", "diet"})["pretrain"]["method"],
            "diet");
}

void check_preset_of_pretrain() {
  const UnlabelledRun unlabelled;
  Arguments arguments = unlabelled.arguments(kOnePretrainingEpoch + Arguments{"--preset", "scratch"});
  EXPECT_TRUE(contains(run_program(arguments).err, "without -m"));
  const Arguments without_model{"pretrain",  unlabelled.images() / "train",
                                "-o",        unlabelled.folder(),
                                "--preset",  "scratch",
                                "--epochs",  "1",
                                "--threads", "2"};
  run(without_model);
  EXPECT_EQ(unlabelled.recipe()["pretrain"]["method"], "mae");
  EXPECT_EQ(unlabelled.recipe()["model"]["init"], "");
}

void check_keep_of_pretrain() {
  EXPECT_EQ(UnlabelledRun().recipe_with(kOnePretrainingEpoch + Arguments{"--keep", "last"})["pretrain"]["keep"],
            "last");
}

void check_teacher_of_pretrain() {
  const auto recipe = UnlabelledRun().recipe_with(kOnePretrainingEpoch + Arguments{"--teacher", small_model()});
  EXPECT_EQ(recipe["pretrain"]["method"], "distill");
  EXPECT_EQ(recipe["pretrain"]["teacher"], small_model());
}

void check_epochs_of_pretrain() {
  for (const int epochs : {1, 2})
    EXPECT_EQ(UnlabelledRun().recipe_with({"--epochs", std::to_string(epochs)})["epochs"], epochs);
}

void check_image_size_of_pretrain() {
  const UnlabelledRun unlabelled;
  run(unlabelled.arguments(kOnePretrainingEpoch + Arguments{"--image-size", "16"}));
  const auto config = nlohmann::json::parse(content_of(unlabelled.folder() / "model/config.json"));
  EXPECT_EQ(config["pretrained_cfg"]["input_size"], (std::vector<int>{3, 16, 16}));
}

// Less time than an epoch takes is one epoch; without the option there are more.
void check_time_of_pretrain() { EXPECT_EQ(UnlabelledRun().recipe_with({"--time", "0.000001s"})["epochs"], 1); }

void check_exif_of_pretrain() {
  EXPECT_EQ(UnlabelledRun().recipe_with(kOnePretrainingEpoch + Arguments{"--exif"})["data"]["exif"], true);
}

void check_set_of_pretrain() {
  EXPECT_EQ(UnlabelledRun().recipe_with(kOnePretrainingEpoch +
                                        Arguments{"--set", "pretrain.head_lr=0.25"})["pretrain"]["head_lr"],
            0.25);
}

void check_resume_of_pretrain() {
  const UnlabelledRun unlabelled;
  const auto steps = json_of(unlabelled.arguments(kOnePretrainingEpoch))["steps"];
  EXPECT_EQ(run_program(unlabelled.arguments(kOnePretrainingEpoch)).status, 1);
  EXPECT_EQ(json_of(unlabelled.arguments(kOnePretrainingEpoch + Arguments{"--resume"}))["steps"], steps);
}

void check_allow_changes_of_pretrain() {
  const UnlabelledRun unlabelled;
  const auto steps = json_of(unlabelled.arguments(kOnePretrainingEpoch))["steps"].get<int>();
  const Arguments changed = unlabelled.arguments({"--epochs", "2", "--resume"});
  EXPECT_TRUE(contains(run_program(changed).err, "epochs"));
  EXPECT_EQ(json_of(changed + Arguments{"--allow-changes"})["steps"], 2 * steps);
}

// Paths on standard input, which a resumed run does not need again.
TEST(PretrainInput, IsAListOnStandardInput) {
  const fs::path images = train::make_images(40, 4), folder = scratch_folder() / "run";
  std::string list;
  for (const auto& entry : fs::recursive_directory_iterator(images / "train")) {
    if (entry.is_regular_file()) list += entry.path().string() + "\n";
  }
  const Arguments arguments{"pretrain", "-", "-o", folder, "-m", small_model(), "--threads", "1", "--epochs", "1"};
  const ProgramResult first = run_program(arguments, list);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(nlohmann::json::parse(first.out)["steps"], 13);  // 108 images in batches of 8
  EXPECT_EQ(run_program(arguments + Arguments{"--resume"}).status, 0);
}

}  // namespace

OptionEffects pretrain_option_effects() {
  return {{"pretrain", "-o,--output", check_output_of_pretrain},
          {"pretrain", "-m,--model", check_model_of_pretrain},
          {"pretrain", "--probe", check_probe_of_pretrain},
          {"pretrain", "--method", check_method_of_pretrain},
          {"pretrain", "--preset", check_preset_of_pretrain},
          {"pretrain", "--keep", check_keep_of_pretrain},
          {"pretrain", "--teacher", check_teacher_of_pretrain},
          {"pretrain", "--epochs", check_epochs_of_pretrain},
          {"pretrain", "--image-size", check_image_size_of_pretrain},
          {"pretrain", "--time", check_time_of_pretrain},
          {"pretrain", "--exif", check_exif_of_pretrain},
          {"pretrain", "--set", check_set_of_pretrain},
          {"pretrain", "--resume", check_resume_of_pretrain},
          {"pretrain", "--allow-changes", check_allow_changes_of_pretrain}};
}

}  // namespace vitrail::testing
