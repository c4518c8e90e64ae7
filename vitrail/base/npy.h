// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's .npy format, version 1.0 (numpy.lib.format): a magic, a header that is a Python literal, the elements in
// C order, little-endian.  Written for float32 and int64; read back for float32, float64 and int64.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/dtype.h"

namespace vitrail {

// Writes an array [rows, row_shape…] row by row.  The number of rows may be unknown until the end: the header, whose
// room is kept free, is written last.  The file appears under its name only when finish() returns.
//
//   NpyWriter logits("logits.npy", DType::f32, std::array<int64_t, 1>{1000});
//   for (…) logits.write_rows(values, 8);
//   logits.finish();
class NpyWriter {
 public:
  // dtype: f32 or i64.  rows: what will be written, checked by finish(); −1 when not known.  Throws Error when the
  // file cannot be written.
  NpyWriter(const std::filesystem::path& path, DType dtype, std::span<const int64_t> row_shape, int64_t rows = -1);

  // `count` rows, contiguous.  The pointer's type must be the file's.
  void write_rows(const float* values, int64_t count) { write(values, DType::f32, count); }
  void write_rows(const int64_t* values, int64_t count) { write(values, DType::i64, count); }

  // Writes the header and puts the file in place.  Throws Error when fewer or more rows came than were announced.
  void finish();

  int64_t rows_written() const { return written_; }

 private:
  void write(const void* values, DType dtype, int64_t count);

  std::string where_;
  AtomicFile file_;
  DType dtype_;
  std::vector<int64_t> row_shape_;
  int64_t announced_;
  int64_t row_elements_ = 1;
  int64_t written_ = 0;
};

// A whole array at once; shape {} is a scalar.
void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, const float* values);
void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, const int64_t* values);

// An array in memory.  Exactly one of the vectors is filled, as dtype says (f32, f64, i64).
struct NpyArray {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<float> f32;
  std::vector<double> f64;
  std::vector<int64_t> i64;
};

// Reads '<f4', '<f8' and '<i8' arrays in C order, versions 1.0 to 3.0.  Throws Error naming the path on anything else,
// and where the file's size is not what its header says.
NpyArray read_npy(const std::filesystem::path& path);

}  // namespace vitrail
