// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/random.h"
#include "vitrail/data/content_internal.h"

namespace vitrail::data {

uint64_t hash_of(std::span<const std::byte> bytes) {
  return random_key({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

int64_t file_size(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  return error ? -1 : static_cast<int64_t>(size);
}

uint64_t hash_of_file(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  return hash_of(mapped.bytes());
}

}  // namespace vitrail::data
