// SPDX-License-Identifier: Apache-2.0
#pragma once
// A bank: patch features of good images, and the model that computes them.  It is one safetensors file.
//   patches    f32 [n, width]
//   metadata   "format": kBankFormat, "bank": JSON with the fields of describe_bank()
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/models/load.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::anomaly {

// What a patch's feature and an image's score are.
//   anomalydino   cosine distance; the mean of the highest 1 % of the patches' distances (Damm et al. 2024,
//                 "AnomalyDINO", section 3.3)
//   patchcore     Euclidean distance of means over 3 × 3 patches; the largest distance, weighted by how far the nearest
//                 patch of the bank is from its own neighbours (Roth et al. 2022, "Towards Total Recall in Industrial
//                 Anomaly Detection", equations 2, 3 and 7)
enum class Method : uint8_t { anomalydino, patchcore };

// The images whose background does not count (foreground_of()): those that are tested, or the good ones of the bank
// too.
enum class Mask : uint8_t { none, test, all };

struct BankOptions {
  Method method = Method::anomalydino;
  std::vector<int64_t> layers = {-1};  // blocks; their features are concatenated
  double coreset = 0.1;                // the share of the patches that the bank keeps
  int64_t seed = 0;                    // for the coreset's projection and first patch
  int64_t rotations = 1;               // the bank has each image at as many angles, evenly spaced
  Mask mask = Mask::none;
};

void describe_options(Fields& fields, BankOptions& options);

struct Bank {
  BankOptions options = {};
  std::string model = {};                      // as find_model() takes it
  std::string digest = {};                     // SHA-256 of its weights
  std::array<int64_t, 2> image_size = {0, 0};  // height and width of the model's input
  int64_t images = 0;                          // that the bank is made of
  // The largest score and the largest distance of a patch among held-out good images; none: there were too few images.
  std::optional<double> threshold = {}, pixel_threshold = {};
  Tensor patches = {};  // [n, width], as patch_features() makes them
};

void describe_bank(Fields& fields, Bank& bank);

void write_bank(const std::filesystem::path& path, const Bank& bank);
bool is_bank(const weights::Checkpoint& file);
// Throws Error for a file with other fields or shapes.
Bank read_bank(const weights::Checkpoint& file);

// SHA-256 of all files of the weights.
std::string digest_of(const models::ModelFiles& files);

// The files of the bank's model: where it was, or beside the bank's file under the same name.  Throws Error naming
// `where`, the bank's file, if it is at neither place, and if its weights are others.
models::ModelFiles find_model(const Bank& bank, const std::filesystem::path& where);

// The model at the bank's image size.  The whole image is resized to it: a defect at the edge is not cropped away.
models::OpenedModel open_model(const models::ModelFiles& files,
                               const std::optional<std::array<int64_t, 2>>& image_size);

}  // namespace vitrail::anomaly
