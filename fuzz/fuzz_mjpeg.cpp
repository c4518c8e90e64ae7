// SPDX-License-Identifier: Apache-2.0
// Fuzzes the splitter of motion JPEG.  Frames must not depend on the pieces in which the stream arrives.
//   corpus: tests/fixtures/image/decode/*.jpg
#include "fuzz/inputs.h"
#include "vitrail/image/mjpeg.h"

namespace {

using Frames = std::vector<std::vector<std::byte>>;

Frames frames_of(std::span<const std::byte> stream, size_t piece) {
  vitrail::image::MjpegSplitter splitter;
  Frames frames;
  while (!stream.empty()) {
    const size_t size = std::min(piece, stream.size());
    splitter.add(stream.first(size));
    stream = stream.subspan(size);
    while (auto frame = splitter.next()) frames.push_back(std::move(frame->bytes));
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(vitrail::fuzz::text_of(data, size));
  const std::string twice = text + text;
  const std::span<const std::byte> stream = std::as_bytes(std::span(twice));
  const Frames whole = frames_of(stream, stream.size());
  if (frames_of(stream, 7) != whole) std::abort();
  for (const auto& frame : whole) {
    if (frame.size() > stream.size()) std::abort();
  }
  return 0;
}
