// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes and hashes of encoded images, for Dataset::content_size and content_hash.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace vitrail::data {

uint64_t hash_of(std::span<const std::byte> bytes);

// −1 if the file cannot be accessed.
int64_t file_size(const std::filesystem::path& file);

// Throws Error naming the file if it cannot be read.
uint64_t hash_of_file(const std::filesystem::path& file);

}  // namespace vitrail::data
