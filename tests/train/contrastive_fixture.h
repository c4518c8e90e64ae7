// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pairs of images and captions, and a recipe that trains the small CLIP of the fixtures on them in about a second.
#include "tests/train/training_runs.h"

namespace vitrail::train {

// Writes IMAGES/NNN.png, and returns a CSV of them with two captions each, which say the colour of the noise.
inline fs::path make_pairs(int images = 40) {
  const fs::path folder = testing::scratch_folder();
  fs::create_directories(folder / "images");
  std::string rows = "filepath,title\n";
  for (int i = 0; i < images; ++i) {
    image::Image image = image::make_image(20, 24, 3);
    RandomStream random(random_key("pairs", static_cast<uint64_t>(i)));
    for (size_t p = 0; p < image.pixels.size(); ++p)
      image.pixels[p] = static_cast<uint8_t>(random.uniform() * 120 + (static_cast<int>(p % 3) == i % 3 ? 120 : 0));
    const std::string name = "images/" + std::to_string(100 + i) + ".png";
    image::write_png(folder / name, image);
    const std::string color = i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue";
    for (const char* kind : {"photo", "drawing"}) rows += str(name, ",\"a ", color, " ", kind, ", number ", i, "\"\n");
  }
  write_file(folder / "pairs.csv", rows);
  return folder / "pairs.csv";
}

inline fs::path small_clip() { return testing::fixture("models/hf_clip"); }

inline Recipe contrastive_recipe_for(const fs::path& pairs, const std::vector<std::string>& settings = {},
                                     const fs::path& model = small_clip()) {
  const std::string recipe = R"({"objective": "contrastive", "model": {"init": ")" + model.string() +
                             R"("}, "data": {"train": ")" + pairs.string() +
                             R"(", "holdout": 8, "workers": 1}, "epochs": 2, "batch_size": 8,
          "optimizer": {"name": "adamw", "lr": 1e-4, "beta2": 0.98, "eps": 1e-6, "weight_decay": 0.1},
          "schedule": {"name": "cosine", "warmup_epochs": 0.5},
          "augment": {"random_resized_crop": {"scale": [0.9, 1]}}, "log_every": 1,
          "checkpoint": {"every_steps": 2, "every_minutes": 0}})";
  return parse_recipe(recipe, "r.json", settings);
}

}  // namespace vitrail::train
