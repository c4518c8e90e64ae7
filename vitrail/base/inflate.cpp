// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/inflate_internal.h"

#include <zlib.h>

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

constexpr uint64_t kMaxBytesPerCall = uint64_t{1} << 30;  // zlib counts bytes in 32 bits

struct Inflater {
  z_stream stream{};
  explicit Inflater(const std::string& where) {
    constexpr int kRawWindowBits = -15;  // 32 KiB window; negative selects raw deflate without a header
    if (::inflateInit2(&stream, kRawWindowBits) != Z_OK) throw Error(where + ": zlib cannot be started");
  }
  ~Inflater() { ::inflateEnd(&stream); }
};

struct Progress {
  uint64_t produced;  // bytes of content
  bool ended;         // the end-of-stream mark was reached
};

// Inflates until `content` is full or the data ends, and removes the consumed bytes from the front of `compressed`.
Progress inflate_into(Inflater& inflater, std::span<const std::byte>& compressed, std::span<std::byte> content) {
  z_stream& stream = inflater.stream;
  uint64_t produced = 0;
  int status = Z_OK;
  while (status == Z_OK && produced < content.size()) {
    const uint64_t in = std::min<uint64_t>(kMaxBytesPerCall, compressed.size());
    const uint64_t out = std::min(kMaxBytesPerCall, content.size() - produced);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data()));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + produced);
    stream.avail_out = static_cast<uInt>(out);
    status = ::inflate(&stream, Z_NO_FLUSH);
    compressed = compressed.subspan(in - stream.avail_in);
    produced += out - stream.avail_out;
  }
  return {produced, status == Z_STREAM_END};
}

void check_ratio(std::span<const std::byte> compressed, uint64_t size, const std::string& where) {
  if (size / kMaxDeflateRatio > compressed.size()) {
    throw Error(where, str("a size that ", compressed.size(), " deflated bytes can have"), str(size));
  }
}

}  // namespace

std::vector<std::byte> inflate_exactly(std::span<const std::byte> compressed, uint64_t size, const std::string& where) {
  check_ratio(compressed, size, where);
  std::vector<std::byte> content(size);
  Inflater inflater(where);
  Progress progress = inflate_into(inflater, compressed, content);
  if (!progress.ended && progress.produced == size) {  // read the end-of-stream mark; one more byte would be too many
    std::byte past_end{};
    const Progress last = inflate_into(inflater, compressed, {&past_end, 1});
    if (last.produced > 0) throw Error(where, str(size, " bytes"), "deflated data with more content");
    progress.ended = last.ended;
  }
  if (!progress.ended || progress.produced != size) {
    throw Error(where, str(size, " bytes of deflated data"), str("damaged data after ", progress.produced));
  }
  return content;
}

std::vector<std::byte> inflate_beginning(std::span<const std::byte> compressed, uint64_t size,
                                         const std::string& where) {
  check_ratio(compressed, size, where);
  std::vector<std::byte> content(size);
  Inflater inflater(where);
  const Progress progress = inflate_into(inflater, compressed, content);
  if (progress.produced != size) throw Error(where, str(size, " bytes of deflated data"), str(progress.produced));
  return content;
}

}  // namespace vitrail
