// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading zip archives (PKWARE's APPNOTE 6.3): stored and deflated entries, zip64.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vitrail {

// One entry, as the central directory describes it.
struct ZipEntry {
  std::string name;              // as written, usually UTF-8; folders end with '/'
  uint64_t size = 0;             // bytes of the content
  uint64_t compressed_size = 0;  // bytes it takes in the archive
  uint64_t header_offset = 0;    // of its local header in the archive
  uint32_t crc32 = 0;
  uint16_t method = 0;     // 0 stored, 8 deflated; others are an Error when read
  bool encrypted = false;  // an Error when read
  bool is_folder() const { return name.ends_with('/'); }
};

// The index of an archive that lies in memory (usually a MappedFile, which must outlive this).  Immutable, so entries
// may be read by several threads at once.
class ZipReader {
 public:
  // Reads the central directory.  Throws Error naming `where` for what is no zip, truncated, damaged, of several
  // volumes, or has a name twice.
  ZipReader(std::span<const std::byte> archive, const std::string& where);
  ZipReader(ZipReader&&) = default;
  ZipReader(const ZipReader&) = delete;  // index_ views the names

  const std::vector<ZipEntry>& entries() const { return entries_; }  // in the directory's order
  const ZipEntry* find(std::string_view name) const;                 // null when there is none

  // The content of a stored entry where it lies in the archive: no copy, no check of its CRC.
  std::span<const std::byte> stored(const ZipEntry& entry) const;
  // The content of any entry, its CRC checked.  Throws Error before anything is allocated when it is longer than
  // `max_size` or than deflate can make of so few bytes, and for damaged data.
  std::vector<std::byte> read(const ZipEntry& entry, uint64_t max_size) const;
  // The first `count` bytes of an entry's content, or all of it when it is shorter; the CRC is not checked.
  std::vector<std::byte> read_beginning(const ZipEntry& entry, uint64_t count) const;

 private:
  struct Directory {
    uint64_t offset, size, count;
  };
  Directory find_directory() const;
  Directory find_directory64(uint64_t end_record) const;
  uint64_t read_entry(uint64_t at, uint64_t end);
  void read_zip64_field(std::span<const std::byte> extra, ZipEntry& entry) const;
  std::vector<std::byte> extract(const ZipEntry& entry, uint64_t count) const;
  std::span<const std::byte> compressed(const ZipEntry& entry) const;

  std::span<const std::byte> archive_;
  std::string where_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, size_t> index_;  // views of entries_' names
};

}  // namespace vitrail
