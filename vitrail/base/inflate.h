// SPDX-License-Identifier: Apache-2.0
#pragma once
// Deflated data (RFC 1951) brought back to its full size, through zlib.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrail {

// What deflate can make of one byte at most (RFC 1951: 258 bytes from 2 bits).
inline constexpr uint64_t kMaxDeflateRatio = 1032;

// Raw deflate data whose size is known.  Throws Error naming `where` when the data is damaged or gives more or fewer
// bytes; a size beyond kMaxDeflateRatio is refused before anything is allocated.
std::vector<std::byte> inflate_exactly(std::span<const std::byte> compressed, uint64_t size, const std::string& where);

// The first `size` bytes of what raw deflate data gives, under the same conditions; what follows is not looked at.
std::vector<std::byte> inflate_beginning(std::span<const std::byte> compressed, uint64_t size,
                                         const std::string& where);

}  // namespace vitrail
