// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's .npz: a zip archive of .npy arrays (numpy.lib.format).
#include <set>
#include <span>
#include <string>
#include <vector>

#include "vitrail/base/dtype.h"
#include "vitrail/base/zip_writer_internal.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::app {

// The arrays 'features' and 'paths'.
class NpzFile {
 public:
  NpzFile(const std::string& path, DType dtype);   // dtype: f32 or f16
  void begin(std::span<const int64_t> row_shape);  // before the first row
  void write_row(const float* values);
  // `paths`: one for each row.  Bytes that are not UTF-8 are written as \xNN.
  void finish(const std::vector<std::string>& paths);

 private:
  std::string header(int64_t rows) const;
  void write_paths(const std::vector<std::string>& paths);

  std::string where_;
  ZipWriter archive_;
  DType dtype_;
  std::vector<int64_t> row_shape_;
  int64_t row_elements_ = 0, rows_ = 0;
};

// Arrays of float32 by their names.
class NpzArrays {
 public:
  explicit NpzArrays(const std::string& path) : where_(path), archive_(path) {}
  void add(const std::string& name, const Tensor& tensor);  // the first of a name
  void commit() { archive_.commit(); }

 private:
  std::string where_;
  ZipWriter archive_;
  std::set<std::string> names_;
};

}  // namespace vitrail::app
