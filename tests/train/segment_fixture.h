// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with masks of generated objects, and a recipe that trains Segment Anything on them in about a second.
#include "tests/train/training_fixture.h"
#include "vitrail/train/objectives/segmentation/segment_recipe_internal.h"

namespace vitrail::train {

// Writes FOLDER/{train,val}/NN.png with FOLDER/{train,val}/NN/{0,1}.png: a bright rectangle and a dark one on grey
// noise of 32×24 pixels.
inline fs::path make_instances(int train = 12, int val = 4) {
  const fs::path root = testing::scratch_folder();
  for (const auto& [split, count] : {std::pair{"train", train}, std::pair{"val", val}}) {
    for (int i = 0; i < count; ++i) {
      const std::string name = (i < 10 ? "0" : "") + std::to_string(i);
      fs::create_directories(root / split / name);
      RandomStream random(random_key(split, static_cast<uint64_t>(i)));
      image::Image image = image::make_image(32, 24, 3);
      for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(110 + 30 * random.uniform());
      for (int object = 0; object < 2; ++object) {
        image::Image mask = image::make_image(32, 24, 1);
        const auto left = 1 + object * 16 + static_cast<int64_t>(4 * random.uniform());
        const auto top = 1 + static_cast<int64_t>(8 * random.uniform());
        for (int64_t y = top; y < top + 12; ++y) {
          for (int64_t x = left; x < left + 10; ++x) {
            mask.row(y)[x] = 255;
            std::fill_n(image.row(y) + 3 * x, 3, object == 0 ? 250 : 5);
          }
        }
        image::write_png(root / split / name / (std::to_string(object) + ".png"), mask);
      }
      image::write_png(root / split / (name + ".png"), image);
    }
  }
  return root;
}

inline std::string tiny_segment_recipe(const fs::path& instances) {
  return R"({"objective": "segment",
             "model": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2, "mlp_ratio": 2},
             "data": {"train": ")" +
         instances.string() + R"(", "val": ")" + instances.string() + R"(", "workers": 1},
             "epochs": 2, "batch_size": 4, "optimizer": {"name": "adamw", "lr": 2e-3}, "clip": 1,
             "schedule": {"name": "cosine", "warmup_epochs": 0.5}, "augment": {"flip": "random"},
             "segment": {"train_encoder": true, "window": 3, "global_every": 2, "decoder_dim": 32, "decoder_depth": 2,
                         "decoder_mlp": 64, "prompts": 2, "rounds": 2},
             "ema": {"decay": 0.8}, "log_every": 1, "checkpoint": {"every_steps": 2, "every_minutes": 0}})";
}

}  // namespace vitrail::train
