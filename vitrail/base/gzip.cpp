// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/gzip_internal.h"

#include <algorithm>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/inflater_internal.h"

namespace vitrail {
namespace {

constexpr uint64_t kInitialSize = 1 << 16;
constexpr int kMemoryLevel = 8;  // zlib's default

constexpr int kWindowBits = 15;               // zlib format with a window of 32 KiB
constexpr int kGzipWindowBits = 15 + 16;      // +16 selects the gzip format
constexpr int kRawWindowBits = -kWindowBits;  // negative selects data without a header

// Doubles a full buffer.  It may grow to one byte more than max_size, so that an overlong file is detected.
void grow_if_full(std::vector<std::byte>& content, uint64_t produced, uint64_t max_size, const std::string& where) {
  if (produced > max_size) throw Error(where, str("at most ", max_size, " bytes of content"), "more");
  if (produced < content.size()) return;
  const uint64_t limit = max_size == UINT64_MAX ? max_size : max_size + 1;
  content.resize(std::min(limit, std::max<uint64_t>(kInitialSize, content.size() * 2)));
}

struct Content {
  std::vector<std::byte> bytes;
  uint64_t produced = 0;  // how many of them are content
};

// Adds the content of one stream, and removes the stream from the front of `compressed`.  format: for errors.
void inflate_stream(Inflater& inflater, std::span<const std::byte>& compressed, Content& content, uint64_t max_size,
                    const std::string& where, const std::string& format) {
  auto& [bytes, produced] = content;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    grow_if_full(bytes, produced, max_size, where);
    const Inflater::Step step = inflater.inflate(compressed, std::span(bytes).subspan(produced));
    status = step.status;
    produced += step.produced;
    if (status != Z_OK && status != Z_STREAM_END)
      throw Error(where, format + " data",
                  str(status == Z_BUF_ERROR ? "truncated" : "damaged", " data after ", produced, " bytes"));
  }
  if (produced > max_size) throw Error(where, str("at most ", max_size, " bytes of content"), "more");
}

std::vector<std::byte> taken(Content content) {
  content.bytes.resize(content.produced);
  return std::move(content.bytes);
}

// A header of RFC 1950: the method deflate with a window of at most 32 KiB, and a check.  Data without a header would
// begin with a stored block and padding that is not zero, which no compressor writes.
bool has_zlib_header(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return false;
  const int first = std::to_integer<int>(bytes[0]), second = std::to_integer<int>(bytes[1]);
  return (first & 15) == Z_DEFLATED && (first >> 4) <= 7 && (first * 256 + second) % 31 == 0;
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> compressed, uint64_t max_size, const std::string& where) {
  if (!is_gzip(compressed)) throw Error(where, "a gzip file", "a file of another kind");
  Content content;
  Inflater inflater(kGzipWindowBits, where);
  std::span<const std::byte> trailing = compressed;
  while (true) {
    inflate_stream(inflater, trailing, content, max_size, where, "gzip");
    if (!is_gzip(trailing)) {
      if (std::any_of(trailing.begin(), trailing.end(), [](std::byte b) { return b != std::byte{0}; }))
        throw Error(where, "nothing after the gzip data", str(trailing.size(), " bytes"));
      return taken(std::move(content));
    }
    inflater.reset();  // another member follows
  }
}

std::vector<std::byte> gzip(std::span<const std::byte> content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::bad_alloc();
  std::vector<std::byte> compressed;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    const size_t produced = compressed.size();
    compressed.resize(produced + kInitialSize);
    stream.next_out = reinterpret_cast<Bytef*>(compressed.data() + produced);
    stream.avail_out = kInitialSize;
    if (stream.avail_in == 0) {  // zlib counts in 32 bits
      const size_t part = std::min<size_t>(content.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(content.data()));
      stream.avail_in = static_cast<uInt>(part);
      content = content.subspan(part);
    }
    status = deflate(&stream, content.empty() ? Z_FINISH : Z_NO_FLUSH);
    compressed.resize(compressed.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return compressed;
}

std::vector<std::byte> inflate_all(std::span<const std::byte> compressed, uint64_t max_size, const std::string& where) {
  Content content;
  Inflater inflater(has_zlib_header(compressed) ? kWindowBits : kRawWindowBits, where);
  inflate_stream(inflater, compressed, content, max_size, where, "deflated");
  if (!compressed.empty()) throw Error(where, "nothing after the deflated data", str(compressed.size(), " bytes"));
  return taken(std::move(content));
}

}  // namespace vitrail
