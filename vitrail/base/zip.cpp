// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/zip_internal.h"

#include <zlib.h>

#include <algorithm>
#include <optional>

#include "vitrail/base/error.h"
#include "vitrail/base/inflate_internal.h"

namespace vitrail {
namespace {

// Signatures and sizes of the records, by their names in the APPNOTE.
constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kEnd64Locator = 0x07064b50;
constexpr uint64_t kLocalHeaderSize = 30, kCentralHeaderSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;
constexpr uint64_t kMaxComment = 0xffff;
constexpr uint32_t kInZip64Field = 0xffffffff;  // a size or offset that the zip64 field holds

// Reads a little-endian unsigned integer of `size` bytes.  The caller checks the bounds.
uint64_t read_uint(std::span<const std::byte> bytes, uint64_t offset, int size) {
  uint64_t value = 0;
  for (int i = size - 1; i >= 0; --i) value = value << 8 | static_cast<uint64_t>(bytes[offset + i]);
  return value;
}

}  // namespace

ZipReader::ZipReader(std::span<const std::byte> archive, const std::string& where) : archive_(archive), where_(where) {
  Directory directory = find_directory();
  skip_prefix(directory);
  if (directory.offset > archive.size() || directory.size > archive.size() - directory.offset) {
    throw Error(where_, str("a zip directory inside the file's ", archive.size(), " bytes"),
                str(directory.size, " bytes at ", directory.offset));
  }
  if (directory.count > directory.size / kCentralHeaderSize) {
    throw Error(where_, str("zip entries that fit a directory of ", directory.size, " bytes"), str(directory.count));
  }
  entries_.reserve(directory.count);
  uint64_t offset = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) offset = read_entry(offset, directory.offset + directory.size);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!index_.emplace(entries_[i].name, i).second) {
      throw Error(where_, "unique names of zip entries", str("\"", entries_[i].name, "\" twice"));
    }
  }
}

// The end record is followed by a comment.  Where none has the length that the record says, the last record counts, as
// for Python: other data may follow it.
ZipReader::Directory ZipReader::find_directory() const {
  const uint64_t size = archive_.size();
  if (size < kEndSize) throw Error(where_, "a zip archive", str("a file of ", size, " bytes"));
  const uint64_t first = size - kEndSize > kMaxComment ? size - kEndSize - kMaxComment : 0;
  std::optional<uint64_t> last;
  for (uint64_t at = size - kEndSize + 1; at-- > first;) {
    if (read_uint(archive_, at, 4) != kEnd) continue;
    if (read_uint(archive_, at + 20, 2) == size - at - kEndSize) return read_directory(at);
    if (!last) last = at;
  }
  if (last) return read_directory(*last);
  throw Error(where_, "a zip archive", "no end record: the file is truncated or of another kind");
}

ZipReader::Directory ZipReader::read_directory(uint64_t at) const {
  if (at >= kLocatorSize && read_uint(archive_, at - kLocatorSize, 4) == kEnd64Locator) return find_directory64(at);
  if (read_uint(archive_, at + 4, 2) != 0 || read_uint(archive_, at + 6, 2) != 0) {
    throw Error(where_, "a zip archive in one volume", "several");
  }
  return {read_uint(archive_, at + 16, 4), read_uint(archive_, at + 12, 4), read_uint(archive_, at + 10, 2), at};
}

ZipReader::Directory ZipReader::find_directory64(uint64_t end_record) const {
  const uint64_t locator = end_record - kLocatorSize, stated = read_uint(archive_, locator + 8, 8);
  const auto is_record = [&](uint64_t at) {
    return at <= locator && locator - at >= kEnd64Size && read_uint(archive_, at, 4) == kEnd64;
  };
  uint64_t at = stated;
  if (!is_record(stated) && locator >= kEnd64Size && is_record(locator - kEnd64Size)) {
    const uint64_t moved = locator - kEnd64Size;  // by data in front, which do not change what the record says
    if (read_uint(archive_, moved + 48, 8) + read_uint(archive_, moved + 40, 8) == stated) at = moved;
  }
  if (!is_record(at)) throw Error(where_, "a zip64 end record", str("none at byte ", stated));
  return {read_uint(archive_, at + 48, 8), read_uint(archive_, at + 40, 8), read_uint(archive_, at + 32, 8), at};
}

// The directory is directly before its end record.  If that is not where its offset says, data precede the archive, and
// the first entry is later than it says by as much.
void ZipReader::skip_prefix(Directory& directory) {
  if (directory.size < kCentralHeaderSize || directory.size > directory.end) return;
  const uint64_t begin = directory.end - directory.size;
  if (begin <= directory.offset || read_uint(archive_, begin, 4) != kCentralHeader) return;
  const uint64_t prefix = begin - directory.offset, entry = prefix + read_uint(archive_, begin + 42, 4);
  if (entry > begin || read_uint(archive_, entry, 4) != kLocalHeader) return;
  prefix_ = prefix;
  directory.offset = begin;
}

// Reads one header of the central directory and returns the offset of the next one.
uint64_t ZipReader::read_entry(uint64_t offset, uint64_t end) {
  if (end - offset < kCentralHeaderSize || read_uint(archive_, offset, 4) != kCentralHeader) {
    throw Error(where_, str("a zip directory entry at byte ", offset), "something else");
  }
  const uint64_t name_length = read_uint(archive_, offset + 28, 2), extra_length = read_uint(archive_, offset + 30, 2),
                 comment_length = read_uint(archive_, offset + 32, 2);
  const uint64_t length = kCentralHeaderSize + name_length + extra_length + comment_length;
  if (end - offset < length)
    throw Error(where_, "zip directory entries inside the directory", str("one at byte ", offset));
  ZipEntry entry;
  entry.name.assign(reinterpret_cast<const char*>(archive_.data()) + offset + kCentralHeaderSize, name_length);
  entry.encrypted = (read_uint(archive_, offset + 8, 2) & 1) != 0;
  entry.method = static_cast<uint16_t>(read_uint(archive_, offset + 10, 2));
  entry.crc32 = static_cast<uint32_t>(read_uint(archive_, offset + 16, 4));
  entry.compressed_size = read_uint(archive_, offset + 20, 4);
  entry.size = read_uint(archive_, offset + 24, 4);
  entry.header_offset = read_uint(archive_, offset + 42, 4);
  const bool is_unix = read_uint(archive_, offset + 5, 1) == 3;  // then the attributes have the mode in the upper half
  entry.is_link = is_unix && (read_uint(archive_, offset + 40, 2) & 0xf000) == 0xa000;
  read_zip64_field(archive_.subspan(offset + kCentralHeaderSize + name_length, extra_length), entry);
  if (entry.header_offset <= archive_.size())
    entry.header_offset += prefix_;  // a larger one is refused when it is read
  entries_.push_back(std::move(entry));
  return offset + length;
}

// Extra field 1 (zip64) holds, in this order, those of the three values that do not fit 32 bits.
void ZipReader::read_zip64_field(std::span<const std::byte> extra, ZipEntry& entry) const {
  while (extra.size() >= 4) {
    const uint64_t id = read_uint(extra, 0, 2), length = read_uint(extra, 2, 2);
    if (length > extra.size() - 4) break;  // padding that some tools write
    if (id == 1) {
      std::span<const std::byte> field = extra.subspan(4, length);
      for (uint64_t* value : {&entry.size, &entry.compressed_size, &entry.header_offset}) {
        if (*value != kInZip64Field) continue;
        if (field.size() < 8) throw Error(where_, "a complete zip64 field", "a short one for " + entry.name);
        *value = read_uint(field, 0, 8);
        field = field.subspan(8);
      }
      return;
    }
    extra = extra.subspan(4 + length);
  }
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

// The compressed bytes follow the local header, whose name and extra field may differ from those of the directory.
std::span<const std::byte> ZipReader::compressed(const ZipEntry& entry) const {
  const std::string where = where_ + ": " + entry.name;
  if (entry.encrypted) throw Error(where, "an entry without encryption", "an encrypted one");
  const uint64_t size = archive_.size();
  if (entry.header_offset > size || size - entry.header_offset < kLocalHeaderSize ||
      read_uint(archive_, entry.header_offset, 4) != kLocalHeader) {
    throw Error(where, str("a zip entry at byte ", entry.header_offset), "none: the file is truncated or damaged");
  }
  const uint64_t begin = entry.header_offset + kLocalHeaderSize + read_uint(archive_, entry.header_offset + 26, 2) +
                         read_uint(archive_, entry.header_offset + 28, 2);
  if (begin > size || entry.compressed_size > size - begin) {
    throw Error(where, str(entry.compressed_size, " bytes inside the file"),
                str("a start at byte ", begin, " of ", size, ": the file is truncated or damaged"));
  }
  return archive_.subspan(begin, entry.compressed_size);
}

std::span<const std::byte> ZipReader::stored(const ZipEntry& entry) const {
  if (entry.method != 0 || entry.size != entry.compressed_size) {
    throw Error(where_ + ": " + entry.name, "a stored zip entry", str("method ", entry.method));
  }
  return compressed(entry);
}

// Returns the first `count` ≤ entry.size bytes of the content.
std::vector<std::byte> ZipReader::extract(const ZipEntry& entry, uint64_t count) const {
  const std::string where = where_ + ": " + entry.name;
  if (entry.method == 0) {
    const auto bytes = stored(entry).first(count);
    return {bytes.begin(), bytes.end()};
  }
  if (entry.method != 8) throw Error(where, "a stored or deflated zip entry", str("compression method ", entry.method));
  const auto bytes = compressed(entry);
  return count == entry.size ? inflate_exactly(bytes, count, where) : inflate_beginning(bytes, count, where);
}

std::vector<std::byte> ZipReader::read_beginning(const ZipEntry& entry, uint64_t count) const {
  return extract(entry, std::min(count, entry.size));
}

std::vector<std::byte> ZipReader::read(const ZipEntry& entry, uint64_t max_size) const {
  const std::string where = where_ + ": " + entry.name;
  if (entry.size > max_size) throw Error(where, str("at most ", max_size, " bytes"), str(entry.size));
  std::vector<std::byte> content = extract(entry, entry.size);
  check_crc(entry, content);
  return content;
}

void ZipReader::check_stored(const ZipEntry& entry) const {
  if (entry.crc32 != 0) check_crc(entry, stored(entry));
}

void ZipReader::check_crc(const ZipEntry& entry, std::span<const std::byte> content) const {
  const uLong crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  if (crc == entry.crc32) return;
  throw Error(where_ + ": " + entry.name, str("a CRC of ", entry.crc32), str(crc, ": the entry is damaged"));
}

}  // namespace vitrail
