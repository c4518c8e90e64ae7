// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of FAISS's exact indices by inner product (Douze et al. 2024, "The Faiss library"), which faiss.read_index
// opens:
//   f32   IndexFlatIP
//   i8    IndexScalarQuantizer(QT_8bit): 8 bits per value, with a range for each of the D columns
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "vitrail/analysis/vector_rows.h"
#include "vitrail/base/atomic_file.h"

namespace vitrail {
class MappedFile;
}

namespace vitrail::analysis {

// The smallest and the largest value of each column, which 8 bits divide into 255 equal parts.
class ColumnRanges {
 public:
  explicit ColumnRanges(int64_t width);
  void include(const float* rows, int64_t count);
  std::vector<float> trained() const;  // FAISS's parameters [2 D]: minima, then differences

 private:
  std::vector<float> min_, max_;
};

// An index whose vectors stay in its file (memory-mapped).
class FlatIndex : public VectorRows {
 public:
  // Throws Error for a file of another format or metric, and for one whose size does not match its header.
  explicit FlatIndex(const std::filesystem::path& path);
  ~FlatIndex() override;

  DType dtype() const { return dtype_; }
  int64_t count() const override { return count_; }
  int64_t width() const override { return width_; }
  void read(int64_t first, int64_t count, float* values) const override;

 private:
  std::unique_ptr<MappedFile> file_;
  DType dtype_ = DType::f32;
  int64_t count_ = 0, width_ = 0;
  std::vector<float> scale_, offset_;  // i8: value = offset + scale · code, per column
  const std::byte* codes_ = nullptr;   // not aligned
};

// Writes an index row by row.
class FlatIndexWriter {
 public:
  // trained: ColumnRanges::trained() of all rows for i8, empty for f32.  Throws Error if the file cannot be written.
  FlatIndexWriter(const std::filesystem::path& path, DType dtype, int64_t width, std::vector<float> trained = {});
  void add(const float* rows, int64_t count);
  // Writes the header.  The file appears at its path by its commit().
  AtomicFile& finish();

 private:
  void write_header();

  AtomicFile file_;
  DType dtype_;
  int64_t width_, count_ = 0;
  std::vector<float> trained_;
};

}  // namespace vitrail::analysis
