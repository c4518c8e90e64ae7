// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

constexpr uint64_t kMaxStep = uint64_t{1} << 30;  // zlib counts in 32 bits
constexpr uint64_t kFirstSize = 1 << 16;

struct Inflater {
  z_stream stream{};
  explicit Inflater(const std::string& where) {
    constexpr int kGzip = 15 + 16;
    if (::inflateInit2(&stream, kGzip) != Z_OK) throw Error(where + ": zlib cannot be started");
  }
  ~Inflater() { ::inflateEnd(&stream); }
};

// Room for more: twice what there was, and one byte beyond the limit so that an overlong file shows itself.
void grow(std::vector<std::byte>& content, uint64_t given, uint64_t max_size, const std::string& where) {
  if (given > max_size) throw Error(where, str("at most ", max_size, " bytes of content"), "more");
  if (given < content.size()) return;
  const uint64_t most = max_size == UINT64_MAX ? max_size : max_size + 1;
  content.resize(std::min(most, std::max<uint64_t>(kFirstSize, content.size() * 2)));
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
  uint64_t taken = 0, given = 0;
  while (true) {
    grow(content, given, max_size, where);
    const uint64_t in = std::min(kMaxStep, compressed.size() - taken), out = std::min(kMaxStep, content.size() - given);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + given);
    stream.avail_out = static_cast<uInt>(out);
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    given += out - stream.avail_out;
    if (status == Z_STREAM_END) {
      const auto rest = compressed.subspan(taken);
      if (!is_gzip(rest)) {
        if (std::any_of(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; })) {
          throw Error(where, "nothing behind the gzip data", str(rest.size(), " bytes"));
        }
        break;
      }
      ::inflateReset(&stream);
    } else if (status != Z_OK) {
      throw Error(where, "gzip data",
                  str(taken == compressed.size() ? "truncated" : "damaged", " data after ", given, " bytes"));
    }
  }
  if (given > max_size) throw Error(where, str("at most ", max_size, " bytes of content"), "more");
  content.resize(given);
  return content;
}

}  // namespace vitrail
