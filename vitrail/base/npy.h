// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's .npy format (numpy.lib.format): a magic number, a header that is a Python literal, then the elements in C
// order, little-endian.  Writes float32, float16 and int64 as version 1.0; reads these and float64.
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

class MappedFile;

// Writes an array [rows, row_shape…] row by row.  The number of rows may be unknown until the end: space for the header
// is reserved, and finish() writes it.  The file appears at its path only when finish() returns.
//
//   NpyWriter logits("logits.npy", DType::f32, std::array<int64_t, 1>{1000});
//   for (…) logits.write_rows(values, 8);
//   logits.finish();
class NpyWriter {
 public:
  // dtype: f32, f16 or i64.  rows: the number of rows to come, which finish() checks, or −1 if unknown.  Throws Error
  // if the file cannot be written.
  NpyWriter(const std::filesystem::path& path, DType dtype, std::span<const int64_t> row_shape, int64_t rows = -1);

  // The shape of a row follows in begin(), before the first row.
  NpyWriter(const std::filesystem::path& path, DType dtype);
  void begin(std::span<const int64_t> row_shape);

  // Writes `count` contiguous rows.  A file of f16 takes float values, which are rounded to nearest even.  Throws Error
  // if the type of the pointer does not fit the dtype of the file.
  void write_rows(const float* values, int64_t count);
  void write_rows(const int64_t* values, int64_t count) { write(values, DType::i64, count); }

  // Writes the header and moves the file to its path, together with its companions.  Throws Error if the number of rows
  // is not the announced one.
  void finish(std::vector<AtomicFile*> companions = {});

 private:
  void write(const void* values, DType dtype, int64_t count);

  std::string where_;
  AtomicFile file_;
  DType dtype_;
  std::vector<int64_t> row_shape_;
  int64_t announced_rows_ = -1;  // −1: unknown
  int64_t row_elements_ = 1;
  int64_t written_rows_ = 0;
};

// Writes a complete array; shape {} is a scalar.
void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, const float* values);
void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, const int64_t* values);

// An array in memory.  The vector of its dtype holds the elements (those of f16 are in `f32`), the others are empty.
struct NpyArray {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<float> f32;
  std::vector<double> f64;
  std::vector<int64_t> i64;
};

// Reads '<f4', '<f2', '<f8' and '<i8' arrays in C order, format versions 1.0 to 3.0.  Throws Error naming the path for
// any other file, and if the size of the file does not match its header.
NpyArray read_npy(const std::filesystem::path& path);
// The same for the content of a file; errors name `where`.
NpyArray parse_npy(std::span<const std::byte> file, const std::string& where);

// The rows of an array [rows, row_shape…] of floating-point values, which stays in its file.
class NpyRows {
 public:
  explicit NpyRows(const std::filesystem::path& path);  // throws Error as read_npy, and for a scalar or integers
  ~NpyRows();

  const std::vector<int64_t>& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  // Rows [first, first + count) as float.
  void read(int64_t first, int64_t count, float* values) const;

 private:
  std::unique_ptr<MappedFile> file_;
  DType dtype_ = DType::f32;
  std::vector<int64_t> shape_;
  const std::byte* elements_ = nullptr;
};

}  // namespace vitrail
