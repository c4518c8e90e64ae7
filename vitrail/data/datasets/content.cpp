// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/content_internal.h"

#include <chrono>

#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/random.h"

namespace vitrail::data {

uint64_t hash_of(std::span<const std::byte> bytes) {
  return random_key({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

int64_t file_size(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  return error ? -1 : static_cast<int64_t>(size);
}

std::optional<int64_t> modification_time(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::file_time_type time = std::filesystem::last_write_time(file, error);
  if (error) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

uint64_t hash_of_file(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  return hash_of(mapped.bytes());
}

}  // namespace vitrail::data
