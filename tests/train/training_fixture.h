// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fixtures of the training tests: a small generated dataset, and a recipe that trains on it in about a second.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/image/encode.h"
#include "vitrail/train/objectives/classification/multi_label_internal.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

namespace fs = std::filesystem;

// Writes FOLDER/{train,test}/{blue,green,red}/NN.png and returns FOLDER.  The images are 8×8 noise, brighter in the
// colour channel of the class.
inline fs::path make_images(int train_per_class = 20, int test_per_class = 4) {
  const fs::path root = testing::scratch_folder();
  const char* const classes[] = {"blue", "green", "red"};
  for (const auto& [split, count] : {std::pair{"train", train_per_class}, std::pair{"test", test_per_class}}) {
    for (int c = 0; c < 3; ++c) {
      fs::create_directories(root / split / classes[c]);
      for (int i = 0; i < count; ++i) {
        image::Image image = image::make_image(8, 8, 3);
        RandomStream random(random_key(split, static_cast<uint64_t>(c), static_cast<uint64_t>(i)));
        for (size_t p = 0; p < image.pixels.size(); ++p) {
          const bool of_class = static_cast<int>(p % 3) == 2 - c;
          image.pixels[p] = static_cast<uint8_t>(random.uniform() * 180 + (of_class ? 60 : 0));
        }
        const std::string name = (i < 10 ? "0" : "") + std::to_string(i) + ".png";
        image::write_png(root / split / classes[c] / name, image);
      }
    }
  }
  return root;
}

inline std::string tiny_recipe(const fs::path& images) {
  return R"({"model": {"img_size": 8, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 2, "mlp_ratio": 2,
                       "drop_path_rate": 0.1, "proj_drop_rate": 0.1},
             "data": {"train": ")" +
         images.string() + R"(", "val": ")" + images.string() + R"(", "holdout": 12, "workers": 1},
             "epochs": 3, "batch_size": 8, "optimizer": {"name": "adamw", "lr": 3e-3}, "clip": 1,
             "schedule": {"name": "cosine", "warmup_epochs": 0.5},
             "augment": {"padded_crop": {"padding": 1}, "flip": "random", "mixup": 0.2, "mix_probability": 0.5},
             "loss": {"label_smoothing": 0.1}, "ema": {"decay": 0.9}, "log_every": 1,
             "checkpoint": {"every_steps": 2, "every_minutes": 0}})";
}

inline std::string read_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline void write_file(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// The rows of metrics.csv without the columns that depend on time: only the first eight columns.
inline std::vector<std::string> deterministic_columns(const fs::path& csv) {
  std::vector<std::string> rows;
  std::istringstream lines(read_text(csv));
  for (std::string line; std::getline(lines, line);) {
    size_t end = 0;
    for (int comma = 0; comma < 8 && end != line.npos; ++comma) end = line.find(',', end + (comma > 0));
    rows.push_back(line.substr(0, end));
  }
  return rows;
}

inline const std::vector<Metric> kAccuracies = classification_metrics(false).each;

// An evaluation of a classifier: its top-1, or top-1 and top-5.
inline Evaluation evaluation_with(double loss, const std::vector<double>& accuracies, int64_t images = 0) {
  return {loss, images, scores_of(kAccuracies, accuracies, images)};
}

using testing::contains;
using testing::error_of;
using testing::Warnings;

}  // namespace vitrail::train
