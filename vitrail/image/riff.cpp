// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/riff_internal.h"

#include <cstring>

namespace vitrail::image {

std::optional<Bytes> find_riff_chunk(Bytes file, std::string_view name) {
  size_t at = 12;  // after "RIFF", the file size and "WEBP"
  while (at + 8 <= file.size()) {
    uint32_t size = 0;  // little-endian; excludes the padding to an even length
    for (int i = 3; i >= 0; --i) size = size << 8 | std::to_integer<uint32_t>(file[at + 4 + i]);
    if (size > file.size() - at - 8) return std::nullopt;
    if (std::memcmp(file.data() + at, name.data(), 4) == 0) return file.subspan(at + 8, size);
    at += 8 + size_t{size} + (size & 1);
  }
  return std::nullopt;
}

}  // namespace vitrail::image
