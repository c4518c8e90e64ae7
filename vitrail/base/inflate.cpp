// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

constexpr uint64_t kMaxStep = uint64_t{1} << 30;  // zlib counts in 32 bits

struct Inflater {
  z_stream stream{};
  explicit Inflater(const std::string& where) {
    constexpr int kRaw = -15;
    if (::inflateInit2(&stream, kRaw) != Z_OK) throw Error(where + ": zlib cannot be started");
  }
  ~Inflater() { ::inflateEnd(&stream); }
};

struct Progress {
  uint64_t given;
  bool ended;
};

// Inflates until `content` is full or the data ends; takes what it used off `compressed`.
Progress inflate_into(Inflater& inflater, std::span<const std::byte>& compressed, std::span<std::byte> content) {
  z_stream& stream = inflater.stream;
  uint64_t given = 0;
  int status = Z_OK;
  while (status == Z_OK && given < content.size()) {
    const uint64_t in = std::min<uint64_t>(kMaxStep, compressed.size()),
                   out = std::min(kMaxStep, content.size() - given);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data()));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + given);
    stream.avail_out = static_cast<uInt>(out);
    status = ::inflate(&stream, Z_NO_FLUSH);
    compressed = compressed.subspan(in - stream.avail_in);
    given += out - stream.avail_out;
  }
  return {given, status == Z_STREAM_END};
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
  if (!progress.ended && progress.given == size) {  // the end mark, unless the data gives more
    std::byte past_end{};
    const Progress last = inflate_into(inflater, compressed, {&past_end, 1});
    if (last.given > 0) throw Error(where, str(size, " bytes"), "deflated data that gives more");
    progress.ended = last.ended;
  }
  if (!progress.ended || progress.given != size) {
    throw Error(where, str(size, " bytes of deflated data"), str("damaged data after ", progress.given));
  }
  return content;
}

std::vector<std::byte> inflate_beginning(std::span<const std::byte> compressed, uint64_t size,
                                         const std::string& where) {
  check_ratio(compressed, size, where);
  std::vector<std::byte> content(size);
  Inflater inflater(where);
  const Progress progress = inflate_into(inflater, compressed, content);
  if (progress.given != size) throw Error(where, str(size, " bytes of deflated data"), str(progress.given));
  return content;
}

}  // namespace vitrail
