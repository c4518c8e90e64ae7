// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes of an open checkpoint file, and tensors that view them.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// A copyable handle; tensors made from it keep the bytes alive.
struct FileBytes {
  std::span<const std::byte> data;
  std::shared_ptr<void> owner;  // keeps `data` alive
  std::string where;            // the path, for errors
  bool mapped = false;          // `owner` is a MappedFile, whose pages are prefetched and released per tensor

  static FileBytes map(const std::filesystem::path& path);                        // throws Error as MappedFile does
  static FileBytes hold(std::vector<std::byte> bytes, const std::string& where);  // in memory

  // The row-major tensor at `offset` bytes: a view if its elements are aligned, otherwise a copy.  Booleans are copied
  // and normalised to 0 and 1.  Releasing the storage of a view releases the file's pages.  Throws Error if the tensor
  // exceeds the file.
  Tensor tensor(uint64_t offset, DType dtype, const Shape& shape) const;
};

}  // namespace vitrail::weights
