// SPDX-License-Identifier: Apache-2.0
#pragma once
// The hub names the files of a repository by digests.
#include <cstdint>
#include <memory>
#include <string>

#include "vitrail/base/digest_internal.h"

namespace vitrail::hub {

// The digest that gives a blob's name: SHA-256 for 64 digits (a file in large file storage), the SHA-1 of git's header
// and the content for 40.
std::unique_ptr<Digest> digest_of_blob(const std::string& name, int64_t size);

// Whether the text is a hexadecimal number of `digits` lower-case digits.
bool is_hex(const std::string& text, size_t digits);

}  // namespace vitrail::hub
