// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/gzip_internal.h"

#include <zlib.h>

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

constexpr uint64_t kMaxBytesPerCall = uint64_t{1} << 30;  // zlib counts bytes in 32 bits
constexpr uint64_t kInitialSize = 1 << 16;

struct Inflater {
  z_stream stream{};
  explicit Inflater(const std::string& where) {
    constexpr int kGzipWindowBits = 15 + 16;  // 32 KiB window; +16 selects the gzip format
    if (::inflateInit2(&stream, kGzipWindowBits) != Z_OK) throw Error(where + ": zlib cannot be started");
  }
  ~Inflater() { ::inflateEnd(&stream); }
};

// Doubles a full buffer.  It may grow to one byte more than max_size, so that an overlong file is detected.
void grow_if_full(std::vector<std::byte>& content, uint64_t produced, uint64_t max_size, const std::string& where) {
  if (produced > max_size) throw Error(where, str("at most ", max_size, " bytes of content"), "more");
  if (produced < content.size()) return;
  const uint64_t limit = max_size == UINT64_MAX ? max_size : max_size + 1;
  content.resize(std::min(limit, std::max<uint64_t>(kInitialSize, content.size() * 2)));
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> compressed, uint64_t max_size, const std::string& where) {
  if (!is_gzip(compressed)) throw Error(where, "a gzip file", "a file of another kind");
  std::vector<std::byte> content;
  Inflater inflater(where);
  z_stream& stream = inflater.stream;
  uint64_t consumed = 0, produced = 0;  // bytes of compressed input and of content
  while (true) {
    grow_if_full(content, produced, max_size, where);
    const uint64_t in = std::min(kMaxBytesPerCall, compressed.size() - consumed);
    const uint64_t out = std::min(kMaxBytesPerCall, content.size() - produced);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data() + consumed));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + produced);
    stream.avail_out = static_cast<uInt>(out);
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    consumed += in - stream.avail_in;
    produced += out - stream.avail_out;
    if (status == Z_STREAM_END) {
      const auto trailing = compressed.subspan(consumed);
      if (!is_gzip(trailing)) {
        if (std::any_of(trailing.begin(), trailing.end(), [](std::byte b) { return b != std::byte{0}; })) {
          throw Error(where, "nothing after the gzip data", str(trailing.size(), " bytes"));
        }
        break;
      }
      ::inflateReset(&stream);  // another member follows
    } else if (status != Z_OK) {
      throw Error(where, "gzip data",
                  str(consumed == compressed.size() ? "truncated" : "damaged", " data after ", produced, " bytes"));
    }
  }
  if (produced > max_size) throw Error(where, str("at most ", max_size, " bytes of content"), "more");
  content.resize(produced);
  return content;
}

}  // namespace vitrail
