// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading of tar archives: POSIX ustar and pax (IEEE Std 1003.1), GNU long names and sizes.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrail {

struct TarEntry {
  std::string path;               // without "./" or '/' in front; folders end with '/'
  uint64_t offset = 0, size = 0;  // where the content is in the archive
};

struct TarListing {
  std::vector<TarEntry> entries;  // files and folders; of several files with one path, the last
  int64_t repeated = 0;           // files left out because another with their path follows
  int64_t symbolic_links = 0;     // left out, as devices and pipes are; a hard link has the content that it refers to
  uint64_t trailing = 0;          // bytes of other data after the end of the archive
};

// Whether the data begins with a header of a tar archive, by its checksum.
bool is_tar(std::span<const std::byte> archive);

// Archives one after the other are read as one.  Throws Error naming `where` if the archive is damaged or truncated, or
// has a sparse file.
TarListing read_tar(std::span<const std::byte> archive, const std::string& where);

}  // namespace vitrail
