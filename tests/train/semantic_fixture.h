// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with label maps of generated objects, and a recipe that trains on them in about a second.
#include "tests/train/training_fixture.h"
#include "vitrail/train/objectives/semantic/semantic_recipe_internal.h"

namespace vitrail::train {

// Writes FOLDER/{images,labels}/{train,val}/NN.png and classes.txt: a bright rectangle (class 1) and a dark one (class
// 2), each with an outline of 255, on grey noise (class 0) of 32×24 pixels.
inline fs::path make_maps(int train = 12, int val = 4) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "classes.txt", "wall\nlamp\nhole\n");
  for (const auto& [split, count] : {std::pair{"train", train}, std::pair{"val", val}}) {
    for (const char* folder : {"images", "labels"}) fs::create_directories(root / folder / split);
    for (int i = 0; i < count; ++i) {
      const std::string name = (i < 10 ? "0" : "") + std::to_string(i) + ".png";
      RandomStream random(random_key(split, static_cast<uint64_t>(i)));
      image::Image image = image::make_image(32, 24, 3), map = image::make_image(32, 24, 1);
      for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(110 + 30 * random.uniform());
      for (int object = 0; object < 2; ++object) {
        const auto left = 1 + object * 16 + static_cast<int64_t>(4 * random.uniform());
        const auto top = 1 + static_cast<int64_t>(8 * random.uniform());
        for (int64_t y = top; y < top + 12; ++y) {
          for (int64_t x = left; x < left + 10; ++x) {
            const bool edge = y == top || y == top + 11 || x == left || x == left + 9;
            map.row(y)[x] = static_cast<uint8_t>(edge ? 255 : 1 + object);
            std::fill_n(image.row(y) + 3 * x, 3, object == 0 ? 250 : 5);
          }
        }
      }
      image::write_png(root / "images" / split / name, image);
      image::write_png(root / "labels" / split / name, map);
    }
  }
  return root;
}

inline std::string tiny_semantic_recipe(const fs::path& maps) {
  return R"({"objective": "semantic",
             "model": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2, "mlp_ratio": 2},
             "data": {"train": ")" +
         maps.string() + R"(", "val": ")" + maps.string() + R"(", "workers": 1},
             "epochs": 2, "batch_size": 4, "optimizer": {"name": "adamw", "lr": 2e-3}, "clip": 1,
             "schedule": {"name": "cosine", "warmup_epochs": 0.5},
             "augment": {"flip": "random", "random_resized_crop": {"scale": [0.5, 1]},
                         "color_jitter": {"brightness": 0.1}},
             "semantic": {"train_backbone": true}, "ema": {"decay": 0.8}, "log_every": 1,
             "checkpoint": {"every_steps": 2, "every_minutes": 0}})";
}

inline Recipe semantic_recipe(const fs::path& maps, const std::vector<std::string>& settings = {}) {
  return parse_recipe(tiny_semantic_recipe(maps), "r.json", settings);
}

}  // namespace vitrail::train
