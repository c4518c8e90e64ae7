// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's .npy format, versions 1 to 3 (numpy/lib/format.py): a magic number, a Python dictionary that describes the
// array, and its elements.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "vitrail/tensor/tensor.h"
#include "vitrail/weights/file_bytes.h"

namespace vitrail::weights {

struct NpyHeader {
  DType dtype = DType::f32;
  std::string unsupported_dtype;  // as in TensorInfo
  Shape shape;
  bool fortran_order = false;  // the first axis varies fastest
  uint64_t data_offset = 0;    // byte offset of the elements
};

// Limit of the header's size; NumPy's headers have a few hundred bytes.
inline constexpr uint64_t kMaxNpyHeader = 64 * 1024;

// `bytes` must contain at least the header, or its first kMaxNpyHeader bytes.  Throws Error naming `where`.
NpyHeader read_npy_header(std::span<const std::byte> bytes, const std::string& where);

// The array of the .npy file at [offset, offset + size) of `bytes`.  Throws Error for an unsupported type, or if the
// size disagrees with the header.
Tensor read_npy(const FileBytes& bytes, uint64_t offset, uint64_t size, const NpyHeader& header);

}  // namespace vitrail::weights
