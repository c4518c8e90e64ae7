// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes, hashes and times of encoded images, for Dataset::content_size, content_hash and modified_at.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

namespace vitrail::data {

uint64_t hash_of(std::span<const std::byte> bytes);

// −1 if the file cannot be accessed.
int64_t file_size(const std::filesystem::path& file);

// In nanoseconds; empty if the file cannot be accessed.
std::optional<int64_t> modification_time(const std::filesystem::path& file);

// Throws Error naming the file if it cannot be read.
uint64_t hash_of_file(const std::filesystem::path& file);

}  // namespace vitrail::data
