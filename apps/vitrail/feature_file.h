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
  virtual void add(const std::string& path, const Tensor& row) = 0;
  virtual void add_failure(const std::string& path, const std::string& error) = 0;
  // `shape` gives the shape of a row if no image succeeded.
  virtual void finish(const std::function<Shape()>& shape) = 0;
};

// The line for an image in the list beside an array.  error: empty for success.
using ListLine = std::function<std::string(const std::string& path, const std::string& error)>;

// An array with a list of its images.  Both appear together.
std::unique_ptr<FeatureFile> make_npy_features(const std::string& array, const std::string& list, ListLine line);

// The extension of `output` chooses: .npy (with the paths in a .txt file beside it) or .csv; "-" is .npy on standard
// output. Throws CLI::ValidationError for another extension, and Error if the file cannot be written.
std::unique_ptr<FeatureFile> make_feature_file(const std::string& output);

}  // namespace vitrail::app
