// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/zip_writer_internal.h"

#include <zlib.h>

#include <algorithm>
#include <climits>

namespace vitrail {
namespace {

constexpr uint16_t kVersion = 45;          // the first with zip64
constexpr uint16_t kDate = 1 << 5 | 1;     // 1 January 1980, as numpy writes it: equal content, equal bytes
constexpr uint32_t kInZip64 = 0xFFFFFFFF;  // the value is in the zip64 field
constexpr uint16_t kUtf8Name = 1 << 11;

template <class Int>
void put(std::string& to, Int value) {
  for (size_t i = 0; i < sizeof(Int); ++i) to += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
}

// What the local header and the central directory say alike: version to read with, flags, method, time, date, CRC,
// sizes, length of the name.
void put_common(std::string& to, uint32_t crc, size_t name_length) {
  put(to, kVersion);
  put(to, kUtf8Name);
  put<uint16_t>(to, 0);  // stored
  put<uint16_t>(to, 0);  // midnight
  put(to, kDate);
  put(to, crc);
  put(to, kInZip64);
  put(to, kInZip64);
  put(to, static_cast<uint16_t>(name_length));
}

uint32_t crc_of(uint32_t crc, const void* data, size_t size) {
  const auto* bytes = static_cast<const Bytef*>(data);
  while (size > 0) {
    const auto part = static_cast<uInt>(std::min<size_t>(size, INT_MAX));
    crc = static_cast<uint32_t>(::crc32(crc, bytes, part));
    bytes += part;
    size -= part;
  }
  return crc;
}

}  // namespace

ZipWriter::ZipWriter(const std::filesystem::path& path) : file_(path) {}

std::string ZipWriter::local_header(const Entry& entry) {
  std::string header = "PK\3\4";
  put_common(header, entry.crc, entry.name.size());
  put<uint16_t>(header, 20);  // bytes of the zip64 field: two sizes
  header += entry.name;
  put<uint16_t>(header, 1);
  put<uint16_t>(header, 16);
  put(header, entry.size);
  put(header, entry.size);
  return header;
}

std::string ZipWriter::directory_header(const Entry& entry) {
  std::string header = "PK\1\2";
  put(header, kVersion);
  put_common(header, entry.crc, entry.name.size());
  put<uint16_t>(header, 28);  // bytes of the zip64 field: two sizes and the offset
  put<uint16_t>(header, 0);   // comment
  put<uint16_t>(header, 0);   // volume
  put<uint16_t>(header, 0);   // internal attributes
  put<uint32_t>(header, 0);   // external attributes
  put(header, kInZip64);
  header += entry.name;
  put<uint16_t>(header, 1);
  put<uint16_t>(header, 24);
  put(header, entry.size);
  put(header, entry.size);
  put(header, entry.offset);
  return header;
}

void ZipWriter::begin(const std::string& name, size_t front) {
  entries_.push_back({.name = name, .offset = position_, .size = front, .front = front});
  const std::string header = local_header(entries_.back()) + std::string(front, '\0');
  file_.write(header);
  position_ += header.size();
}

void ZipWriter::write(const void* data, size_t size) {
  Entry& entry = entries_.back();
  file_.write(data, size);
  entry.crc = crc_of(entry.crc, data, size);
  entry.size += size;
  position_ += size;
}

void ZipWriter::end(const std::string& front) {
  Entry& entry = entries_.back();
  const uint32_t crc = crc_of(0, front.data(), front.size());
  entry.crc = static_cast<uint32_t>(::crc32_combine(crc, entry.crc, static_cast<z_off_t>(entry.size - entry.front)));
  file_.seek(entry.offset);
  file_.write(local_header(entry) + front);
  file_.seek(position_);
}

void ZipWriter::commit() {
  const uint64_t directory = position_;
  std::string text;
  for (const Entry& entry : entries_) text += directory_header(entry);
  const uint64_t size = text.size(), end = directory + size, count = entries_.size();
  text += "PK\6\6";  // end of the directory, of zip64
  put<uint64_t>(text, 44);
  put(text, kVersion);
  put(text, kVersion);
  put<uint32_t>(text, 0);
  put<uint32_t>(text, 0);
  put(text, count);
  put(text, count);
  put(text, size);
  put(text, directory);
  text += "PK\6\7";  // where that is
  put<uint32_t>(text, 0);
  put(text, end);
  put<uint32_t>(text, 1);
  text += "PK\5\6";  // end of the directory
  put<uint32_t>(text, 0);
  put<uint16_t>(text, 0xFFFF);
  put<uint16_t>(text, 0xFFFF);
  put(text, kInZip64);
  put(text, kInZip64);
  put<uint16_t>(text, 0);
  file_.write(text);
  file_.commit();
}

}  // namespace vitrail
