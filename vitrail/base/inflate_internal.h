// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decompression of raw deflate data (RFC 1951) whose decompressed size is known.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrail {

// Maximum size ratio of deflate: a match of 258 bytes takes at least 2 bits (RFC 1951).
inline constexpr uint64_t kMaxDeflateRatio = 1032;

// Decompresses data that has exactly `size` bytes of content.  Throws Error naming `where` if the data is damaged or
// has another size.  A size that exceeds kMaxDeflateRatio is refused before anything is allocated.
std::vector<std::byte> inflate_exactly(std::span<const std::byte> compressed, uint64_t size, const std::string& where);

// Decompresses the first `size` bytes and ignores the data after them.  Errors as inflate_exactly.
std::vector<std::byte> inflate_beginning(std::span<const std::byte> compressed, uint64_t size,
                                         const std::string& where);

}  // namespace vitrail
