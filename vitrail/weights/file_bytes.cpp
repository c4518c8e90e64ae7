// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/file_bytes.h"

#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"

namespace vitrail::weights {
namespace {

void release_pages(void* file, const std::byte* data, size_t bytes) {
  static_cast<const MappedFile*>(file)->release(data, bytes);
}

// Non-zero bytes are true; a C++ bool must be 0 or 1.
void copy_booleans(std::byte* to, const std::byte* from, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = std::byte{from[i] != std::byte{0}};
}

}  // namespace

FileBytes FileBytes::map(const std::filesystem::path& path) {
  auto file = std::make_shared<MappedFile>(path);
  const auto data = file->bytes();
  return {data, std::move(file), path.string(), true};
}

FileBytes FileBytes::hold(std::vector<std::byte> bytes, const std::string& where) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> data = *owner;
  return {data, std::move(owner), where};
}

Tensor FileBytes::tensor(uint64_t offset, DType dtype, const Shape& shape) const {
  const uint64_t count = static_cast<uint64_t>(checked_numel({shape.begin(), shape.end()}, where));
  if (offset > data.size() || count > (data.size() - offset) / size_of(dtype)) {
    throw Error(where, str("a tensor of shape ", shape, " inside the file's ", data.size(), " bytes"),
                str("one that begins at byte ", offset));
  }
  if (count == 0) return Tensor::empty(shape, dtype);
  const std::byte* first = data.data() + offset;
  const size_t bytes = count * size_of(dtype);
  const bool aligned = reinterpret_cast<uintptr_t>(first) % size_of(dtype) == 0;
  if (mapped) static_cast<const MappedFile*>(owner.get())->prefetch(first, bytes);
  if (aligned && dtype != DType::boolean) {
    auto storage = Storage::borrow(first, bytes, owner, mapped ? release_pages : nullptr);
    return Tensor(std::move(storage), dtype, shape, contiguous_strides(shape), 0);
  }
  Tensor copy = Tensor::empty(shape, dtype);
  if (dtype == DType::boolean) {
    copy_booleans(copy.raw(), first, bytes);
  } else {
    std::memcpy(copy.raw(), first, bytes);
  }
  return copy;
}

}  // namespace vitrail::weights
