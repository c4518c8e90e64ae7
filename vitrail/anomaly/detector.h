// SPDX-License-Identifier: Apache-2.0
#pragma once
// Anomaly detection: how far the patches of an image are from those of good images.
#include <memory>
#include <vector>

#include "vitrail/anomaly/bank.h"
#include "vitrail/anomaly/patches.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::anomaly {

// Thread-safe.
class Detector {
 public:
  // file: a bank's.  options: threads and precision.  Throws Error as read_bank() and find_model().
  Detector(const models::ModelFiles& file, const ModelOptions& options);

  PatchDistances run(const image::ImageView& image) const;
  // The distances at each pixel, [height, width]: bilinear, half-pixel centres, then a Gaussian of 4 pixels.
  Tensor map(const PatchDistances& patches, int64_t height, int64_t width) const;

  const Bank& bank() const { return bank_; }
  const Model& model() const { return *model_; }
  std::array<int64_t, 2> grid() const { return grid_; }  // rows, columns of patches

 private:
  Bank bank_;
  std::unique_ptr<Model> model_;
  PatchSearch search_;
  infer::Request request_;
  std::array<int64_t, 2> grid_;
};

}  // namespace vitrail::anomaly
