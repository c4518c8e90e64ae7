// SPDX-License-Identifier: Apache-2.0
// Trains by an objective of its own, from a recipe: steps, validation, checkpoints, report and resumption are the
// run's.  In vitrail itself, the folder would be vitrail/train/objectives/rotation/, with a row in objective.cpp.
//
//   example_extending_objective FOLDER
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "examples/extending/toy_objective/rotation.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/image/encode.h"

namespace {

namespace fs = std::filesystem;
using namespace vitrail;

void require(bool holds, const std::string& claim) {
  if (!holds) throw std::runtime_error("not true: " + claim);
}

// Bright above and dark below, with noise, in two classes whose names do not matter.
void write_images(const fs::path& folder) {
  for (const auto& [split, count] : {std::pair{"train", 64}, {"val", 4}}) {
    for (int i = 0; i < count; ++i) {
      RandomStream random(random_key(split, static_cast<uint64_t>(i)));
      image::Image image = image::make_image(16, 16, 3);
      for (size_t p = 0; p < image.pixels.size(); ++p)
        image.pixels[p] = static_cast<uint8_t>(40 * random.uniform() + 210 * (1 - static_cast<double>(p) / 768));
      const fs::path path = folder / split / (i % 2 == 0 ? "a" : "b") / (std::to_string(i) + ".png");
      fs::create_directories(path.parent_path());
      image::write_png(path, image);
    }
  }
}

train::Recipe recipe_with(const fs::path& images, int turns, int epochs) {
  return train::parse_recipe(str(R"({"objective": "rotation", "rotation": {"turns": )", turns,
                                 R"(}, "model": {}, "optimizer": {"name": "adamw", "lr": 3e-3}, "data": {"train": ")",
                                 images.string(), R"("}, "epochs": )", epochs, R"(, "batch_size": 8})"),
                             "recipe.json");
}

void check(const fs::path& folder) {
  fs::remove_all(folder);
  write_images(folder / "images");
  const fs::path run = folder / "run";
  const train::TrainingResult first = train::train(recipe_with(folder / "images", 4, 2), {.folder = run, .threads = 2});
  const train::TrainingResult result = train::train(
      recipe_with(folder / "images", 4, 6), {.folder = run, .resume = true, .allow_changes = true, .threads = 2});
  std::printf("accuracy %.2f after epoch %d\n", result.best->value, static_cast<int>(result.epoch));
  require(first.epoch == 2 && result.epoch == 6, "a run goes on with more epochs");
  require(result.best->value > 0.9, "rotations are learned");
  for (const char* file : {"recipe.json", "metrics.csv", "report.html", "summary.json", "model/model.safetensors"})
    require(fs::exists(run / file), "the run writes " + std::string(file));
  require(train::read_recipe(run / "recipe.json").objective == "rotation", "the recipe is read back");
  try {
    recipe_with(folder / "images", 3, 1);
  } catch (const Error& error) {
    require(std::string(error.what()).find("rotation.turns: expected 2 or 4, got 3") != std::string::npos,
            "the objective checks its section");
    return;
  }
  require(false, "three turns are refused");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    require(argc == 2, "the argument is a folder, which is replaced");
    train::add_objective(extending::rotation_objective());
    check(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
