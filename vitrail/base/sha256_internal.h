// SPDX-License-Identifier: Apache-2.0
#pragma once
// SHA-256 (FIPS 180-4).
#include <cstddef>
#include <span>
#include <string>

namespace vitrail {

// The digest as 64 hexadecimal digits.
std::string sha256(std::span<const std::byte> data);

}  // namespace vitrail
