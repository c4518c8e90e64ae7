// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading gzip files (RFC 1952).
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrail {

// The content of a .gz file, of all its members one after another, their CRCs checked.  Throws Error naming `where` for
// what is no gzip, truncated or damaged, followed by anything but zeros, or longer than `max_size` (at most that much
// is allocated).
std::vector<std::byte> gunzip(std::span<const std::byte> compressed, uint64_t max_size, const std::string& where);

// Whether the bytes begin as a gzip file does.
bool is_gzip(std::span<const std::byte> bytes);

}  // namespace vitrail
