// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/inflate_internal.h"

#include "vitrail/base/error.h"
#include "vitrail/base/inflater_internal.h"

namespace vitrail {
namespace {

constexpr int kRawDeflate = -15;  // a window of 32 KiB; negative selects data without a header

struct Progress {
  uint64_t produced;  // bytes of content
  bool ended;         // the end-of-stream mark was reached
};

// Inflates until `content` is full or the data ends, and removes the consumed bytes from the front of `compressed`.
Progress inflate_into(Inflater& inflater, std::span<const std::byte>& compressed, std::span<std::byte> content) {
  uint64_t produced = 0;
  int status = Z_OK;
  while (status == Z_OK && produced < content.size()) {
    const Inflater::Step step = inflater.inflate(compressed, content.subspan(produced));
    status = step.status;
    produced += step.produced;
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
  Inflater inflater(kRawDeflate, where);
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
  Inflater inflater(kRawDeflate, where);
  const Progress progress = inflate_into(inflater, compressed, content);
  if (progress.produced != size) throw Error(where, str(size, " bytes of deflated data"), str(progress.produced));
  return content;
}

}  // namespace vitrail
