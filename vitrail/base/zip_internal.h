// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading of zip archives (PKWARE APPNOTE 6.3): stored and deflated entries, zip64.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vitrail {

// An entry of the central directory.
struct ZipEntry {
  std::string name;              // usually UTF-8; folders end with '/'
  uint64_t size = 0;             // bytes of the content
  uint64_t compressed_size = 0;  // bytes in the archive
  uint64_t header_offset = 0;    // byte offset of its local header in the archive
  uint32_t crc32 = 0;
  uint16_t method = 0;     // 0: stored, 8: deflated; reading an entry with another method throws Error
  bool encrypted = false;  // reading an encrypted entry throws Error
  bool is_link = false;    // a symbolic link, whose content is its target
  bool is_folder() const { return name.ends_with('/'); }
};

// Reads a zip archive from memory, usually from a MappedFile, which must outlive the reader.  Immutable after
// construction: several threads may read entries at once.
class ZipReader {
 public:
  // Reads the central directory.  Throws Error naming `where` if the data is no zip archive, is truncated or damaged,
  // has several volumes, or contains a name twice.  Data may precede the archive, as in a program that unpacks itself,
  // and up to 64 KiB may follow it.
  ZipReader(std::span<const std::byte> archive, const std::string& where);
  ZipReader(ZipReader&&) = default;
  ZipReader(const ZipReader&) = delete;  // index_ refers to the names in entries_

  const std::vector<ZipEntry>& entries() const { return entries_; }  // in the order of the central directory
  const ZipEntry* find(std::string_view name) const;                 // null if there is no entry of this name

  // Returns the content of a stored entry as a view of the archive, without checking its CRC.
  std::span<const std::byte> stored(const ZipEntry& entry) const;
  // Throws Error if the content of a stored entry is damaged.  An entry with a CRC of 0 has none: torch.save can omit
  // them.
  void check_stored(const ZipEntry& entry) const;
  // Returns the content of any entry after checking its CRC.  Throws Error for damaged data, and before allocating
  // memory if the size exceeds `max_size` or the maximum ratio of deflate.
  std::vector<std::byte> read(const ZipEntry& entry, uint64_t max_size) const;
  // Returns the first `count` bytes of an entry, or all of it if it is shorter.  Does not check the CRC.
  std::vector<std::byte> read_beginning(const ZipEntry& entry, uint64_t count) const;

 private:
  struct Directory {
    uint64_t offset, size, count;
    uint64_t end;  // where the record begins that follows the directory
  };
  Directory find_directory() const;
  Directory read_directory(uint64_t end_record) const;
  Directory find_directory64(uint64_t end_record) const;
  void skip_prefix(Directory& directory);
  uint64_t read_entry(uint64_t offset, uint64_t end);
  void read_zip64_field(std::span<const std::byte> extra, ZipEntry& entry) const;
  void check_crc(const ZipEntry& entry, std::span<const std::byte> content) const;
  std::vector<std::byte> extract(const ZipEntry& entry, uint64_t count) const;
  std::span<const std::byte> compressed(const ZipEntry& entry) const;

  std::span<const std::byte> archive_;
  std::string where_;
  uint64_t prefix_ = 0;  // bytes before the archive, which its offsets do not count
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, size_t> index_;  // name → index in entries_
};

}  // namespace vitrail
