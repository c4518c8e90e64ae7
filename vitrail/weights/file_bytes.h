// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes of an opened weights file, and tensors that view them.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// Copyable handle: tensors made from it keep the bytes alive.
struct FileBytes {
  std::span<const std::byte> data;
  std::shared_ptr<void> owner;  // keeps `data` where it is
  std::string where;            // the path, for errors
  bool mapped = false;          // `owner` is a MappedFile: tensors' pages are fetched and given back in one call

  static FileBytes map(const std::filesystem::path& path);                        // throws Error as MappedFile does
  static FileBytes hold(std::vector<std::byte> bytes, const std::string& where);  // in memory: tests, inflated entries

  // The row-major tensor that begins at `offset` bytes: a view where its elements are aligned there, otherwise (and for
  // booleans, whose bytes are brought to 0 and 1) a copy.  Releasing its storage gives the pages back.  Throws Error
  // when it does not lie inside the file.
  Tensor tensor(uint64_t offset, DType dtype, const Shape& shape) const;
};

}  // namespace vitrail::weights
