// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with generated objects, and a recipe that trains on them in about a second.
#include "tests/train/training_fixture.h"
#include "vitrail/train/objectives/detection/detection_recipe_internal.h"

namespace vitrail::train {

// Writes FOLDER/images/{train,val}/NN.png of 48×32 pixels with labels in YOLO's form: a bright square (class 0, "lamp")
// and a dark one (class 1, "hole") of 12 pixels on grey noise.
inline fs::path make_boxes(int train = 12, int val = 4) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "data.yaml", "train: images/train\nval: images/val\nnames:\n  0: lamp\n  1: hole\n");
  for (const auto& [split, count] : {std::pair{"train", train}, std::pair{"val", val}}) {
    for (const char* folder : {"images", "labels"}) fs::create_directories(root / folder / split);
    for (int i = 0; i < count; ++i) {
      const std::string name = (i < 10 ? "0" : "") + std::to_string(i);
      RandomStream random(random_key(split, static_cast<uint64_t>(i)));
      image::Image image = image::make_image(48, 32, 3);
      for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(110 + 30 * random.uniform());
      std::string labels;
      for (int object = 0; object < 2; ++object) {
        const auto left = 1 + object * 24 + static_cast<int64_t>(8 * random.uniform());
        const auto top = 1 + static_cast<int64_t>(16 * random.uniform());
        for (int64_t y = top; y < top + 12; ++y) std::fill_n(image.row(y) + 3 * left, 36, object == 0 ? 250 : 5);
        labels += std::to_string(object) + " " + std::to_string(static_cast<double>(left + 6) / 48) + " " +
                  std::to_string(static_cast<double>(top + 6) / 32) + " 0.25 0.375\n";
      }
      image::write_png(root / "images" / split / (name + ".png"), image);
      write_file(root / "labels" / split / (name + ".txt"), labels);
    }
  }
  return root;
}

inline std::string tiny_detection_recipe(const fs::path& boxes) {
  return R"({"objective": "detect",
             "model": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 4, "num_heads": 2, "mlp_ratio": 2},
             "data": {"train": ")" +
         boxes.string() + R"(", "val": ")" + boxes.string() + R"(", "workers": 1},
             "epochs": 2, "batch_size": 4, "optimizer": {"name": "adamw", "lr": 1e-3}, "clip": 1,
             "schedule": {"name": "cosine", "warmup_epochs": 0.5},
             "augment": {"flip": "random", "random_resized_crop": {"scale": [0.5, 1]},
                         "color_jitter": {"brightness": 0.1}},
             "detect": {"size": 64, "queries": 6, "groups": 2, "width": 16}, "ema": {"decay": 0.8}, "log_every": 1,
             "checkpoint": {"every_steps": 2, "every_minutes": 0}})";
}

inline Recipe detection_recipe(const fs::path& boxes, const std::vector<std::string>& settings = {}) {
  return parse_recipe(tiny_detection_recipe(boxes), "r.json", settings);
}

}  // namespace vitrail::train
