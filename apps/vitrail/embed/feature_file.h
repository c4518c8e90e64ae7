// SPDX-License-Identifier: Apache-2.0
#pragma once
// The output file of `vitrail embed`: a row of features for each image.
#include <functional>
#include <memory>
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::app {

// The first image that succeeds determines the shape of all rows.  Failed images have rows without values.
class FeatureFile {
 public:
  virtual ~FeatureFile() = default;
  // Throws Error for a row of another shape than the others, or with values beyond the type's range.
  virtual void check(const Tensor& row) const = 0;
  virtual void add(const std::string& path, const Tensor& row) = 0;  // a checked row; throws if it cannot be written
  virtual void add_failure(const std::string& path, const std::string& error) = 0;
  // `shape` gives the shape of a row if no image succeeded.  An array has `info` in FILE.json (embedding_info.h),
  // unless it is empty.
  virtual void finish(const std::function<Shape()>& shape, const std::string& info = "") = 0;
};

// The line for an image in the list beside an array.  error: empty for success.
using ListLine = std::function<std::string(const std::string& path, const std::string& error)>;

// An array of f32 or f16 with a list of its images.  Both appear together.  No `info` is written.
std::unique_ptr<FeatureFile> make_npy_features(const std::string& array, const std::string& list, ListLine line,
                                               DType dtype);

// The extension of `output` chooses: .npy (with the paths in a .txt file beside it), .npz or .csv; "-" is .npy on
// standard output.  dtype: f32, or f16 for an array.  with_record: whether finish() gets an `info`.  Throws
// CLI::ValidationError for another extension or dtype, and Error if the file cannot be written.
std::unique_ptr<FeatureFile> make_feature_file(const std::string& output, DType dtype = DType::f32,
                                               bool with_record = true);

}  // namespace vitrail::app
