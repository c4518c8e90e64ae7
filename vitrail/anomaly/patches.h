// SPDX-License-Identifier: Apache-2.0
#pragma once
// Features of patches, and their distances from those of good images.
#include <memory>

#include "vitrail/analysis/vector_rows.h"
#include "vitrail/anomaly/bank.h"
#include "vitrail/infer/session.h"

namespace vitrail::anomaly {

// The features that patch_features() takes.
infer::Request feature_request(const BankOptions& options);

// grid: the result of feature_request() for an image, [rows, columns, D], or [layers, rows, columns, D].  Returns
// [rows · columns, layers · D]: for anomalydino unit vectors, for patchcore means over 3 × 3 patches of the grid.
Tensor patch_features(const Tensor& grid, Method method);

// The features of the layers side by side: [rows · columns, layers · D].
Tensor concatenated_layers(const Tensor& grid);

// The patches of an image.
struct Patches {
  Tensor features;                       // [n, width], as patch_features() makes them
  std::vector<uint8_t> foreground = {};  // by foreground_of(); empty: all patches count
};

// grid: as for patch_features().
Patches patches_of(const Tensor& grid, const BankOptions& options);

struct PatchDistances {
  std::vector<float> distances;  // from each patch to the nearest of the bank; 0 in the background
  double score = 0;              // the image's
};

// The patches of good images, ready for searches.
class PatchSearch {
 public:
  PatchSearch(const Tensor& patches, Method method);  // patches [n, width]
  int64_t width() const { return patches_.size(1); }
  PatchDistances distances(const Patches& image) const;

 private:
  double patchcore_score(const Tensor& features, const std::vector<float>& distances,
                         const std::vector<int64_t>& nearest) const;

  Tensor patches_;
  Method method_;
  // For inner products that order as distances do: patchcore's rows have one more column, −|row|² / 2.
  std::unique_ptr<analysis::TensorRows> rows_;
};

}  // namespace vitrail::anomaly
