// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gzip files (RFC 1952), and the decompression of deflated data whose size is not known.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrail {

// Returns the decompressed content of a gzip file; the contents of several members are concatenated, and every CRC is
// checked.  Zero bytes after the last member are ignored.  Allocates at most about `max_size` bytes.
// Throws Error naming `where` if the data is not gzip, is truncated or damaged, has other trailing bytes, or
// decompresses to more than `max_size` bytes.
std::vector<std::byte> gunzip(std::span<const std::byte> compressed, uint64_t max_size, const std::string& where);

// Returns the content of data in the zlib format (RFC 1950), or without its header and check (RFC 1951), which some
// programs send as HTTP's content coding `deflate`.  Limits and errors as gunzip().
std::vector<std::byte> inflate_all(std::span<const std::byte> compressed, uint64_t max_size, const std::string& where);

// Returns a gzip file of this content, without a name and a time.
std::vector<std::byte> gzip(std::span<const std::byte> content);

// Returns whether the data starts with the gzip magic number.
bool is_gzip(std::span<const std::byte> bytes);

}  // namespace vitrail
