// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base64 with padding (RFC 4648, section 4).
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace vitrail {

std::string to_base64(std::span<const std::byte> bytes);

// Line breaks are skipped (RFC 2045, section 6.8).  Throws Error naming `where` for other characters, a
// wrong length, and bits after the last byte.
std::string from_base64(std::string_view text, const std::string& where);

// The bytes of "data:image/png;base64,…".  Throws Error naming `where` for other text; no URL is fetched.
std::string from_data_uri(std::string_view uri, const std::string& where);

// The bytes of a data URI or of base64.  Throws Error naming `where`, also for the URL of another scheme.
std::string from_base64_or_uri(std::string_view text, const std::string& where);

}  // namespace vitrail
